// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Sums over later keys, by every call of the CPU executor, against 50 digits.
#include <vector>

#include <attune/attune.hpp>
#include <attune/reference.hpp>
#include <attune/testing/forward_check.hpp>

#include "../../support/report.hpp"
#include "../../support/stick_breaking.hpp"
#include "../../unit/check.hpp"

namespace attune::test {
namespace {

std::vector<double> const scales{0.3, 1.2};

TEST_CASE("ordered sums: stick-breaking agrees with 50 digits") {
  auto const op = attention(stick_breaking{per_head(scales)}, normalizer::exponential{}, mask::causal{});
  check_passed(testing::check_forward(op, {.heads = 2, .queries = 9, .keys = 75, .width = 4, .key_heads = 1}, 1));
}

TEST_CASE("ordered sums: statistics need all keys") {
  auto const op = attention(stick_breaking{per_head(scales)}, normalizer::exponential{}, mask::causal{});
  std::vector<double> x(2 * 3), out(2 * 3);
  tensor<double const> const view(x, {1, 2, 3, 1});
  auto const rows = forward_and_save(cpu<double>{1}, op, {.q = view, .k = view, .v = view},
                                     {.out = tensor<double>(out, {1, 2, 3, 1})});
  CHECK(error_of([&] { statistics(cpu<double>{1}, op, {.q = view, .k = view, .v = view}, rows, {}, {0, 2}); }) ==
        "attune::statistics: keys has the interval [0, 2); expected [0, 3): an ordered sum needs all keys");
}

}  // namespace
}  // namespace attune::test
