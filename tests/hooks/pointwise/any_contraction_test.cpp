// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A gate may name any contraction: state-space duality, s exp(c_i - c_j) with linear weights.
#include <attune/attune.hpp>

#include "../../support/contraction_lists.hpp"
#include "../../support/every_call.hpp"

namespace attune::test {
namespace {

TEST_CASE("gates: of any contraction") {
  auto const op = attention(kernel::dot_product{}, decay_gate{}, plain_sum{}, mask::causal{});
  auto const r = testing::check_gradients(op, {.heads = 2, .queries = 4, .keys = 7, .width = 3}, 7);
  INFO(printed(r));
  CHECK(r.passed());
  CHECK(r.line("input sort_k").magnitude > 1e-2);
}

}  // namespace
}  // namespace attune::test
