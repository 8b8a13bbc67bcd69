// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Gradients of sums over later keys, against differences.
#include <vector>

#include <attune/attune.hpp>
#include <attune/reference.hpp>
#include <attune/testing/gradient_check.hpp>

#include "../../support/report.hpp"
#include "../../support/stick_breaking.hpp"
#include "../../unit/check.hpp"

namespace attune::test {
namespace {

std::vector<double> const scales{0.3, 1.2};

TEST_CASE("ordered sums: gradients of stick-breaking agree with differences") {
  auto const op = attention(stick_breaking_by_parts{{per_head(scales)}}, normalizer::exponential{}, mask::causal{});
  check_passed(testing::check_gradients(op, {.heads = 2, .queries = 4, .keys = 7, .width = 3, .key_heads = 1}, 3));
}

}  // namespace
}  // namespace attune::test
