// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The gradients of rotary embeddings, next to a dot product that reads the same keys, and of two of them.
#include <sstream>

#include <attune/policies.hpp>
#include <attune/testing/gradient_check.hpp>

#include "../../unit/check.hpp"
#include "configurations.hpp"

namespace attune::test {
namespace {

TEST_CASE("rotary: gradients agree with differences") {
  rotary_configurations const all(5, 7, 11);
  for (kernel::rotary const& k : all.kernels()) {
    auto const op = attention(k + kernel::dot_product{.scale = 0.3} + all.kernels().front(), mask::causal{});
    auto const r = testing::check_gradients(
        op, {.batch = 2, .heads = 2, .queries = 5, .keys = 7, .width = 11, .value_width = 3, .key_heads = 1}, 4);
    std::ostringstream text;
    text << r;
    INFO(text.str());
    CHECK(r.passed());
  }
}

}  // namespace
}  // namespace attune::test
