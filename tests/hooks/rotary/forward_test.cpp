// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Rotary embeddings by every forward call of the CPU executor: within the operator's own bound of 50 digits.
#include <sstream>

#include <attune/policies.hpp>
#include <attune/testing/forward_check.hpp>

#include "../../unit/check.hpp"
#include "configurations.hpp"

namespace attune::test {
namespace {

TEST_CASE("rotary: forward, decode, split and statistics agree with 50 digits") {
  rotary_configurations const all(3, 70, 43);
  for (kernel::rotary const& k : all.kernels()) {
    auto const op = attention(k + kernel::alibi{0.1}, mask::causal{});
    auto const r = testing::check_forward(
        op, {.batch = 2, .heads = 2, .queries = 3, .keys = 70, .width = 43, .value_width = 5, .key_heads = 1}, 3);
    std::ostringstream text;
    text << r;
    INFO(text.str());
    CHECK(r.passed());
  }
}

}  // namespace
}  // namespace attune::test
