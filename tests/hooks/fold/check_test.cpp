// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// check_forward and check_gradients of folds, in float and double.
#include "../../unit/check.hpp"

#include <sstream>
#include <vector>

#include <attune/attune.hpp>
#include <attune/testing/forward_check.hpp>
#include <attune/testing/gradient_check.hpp>

namespace attune::test {
namespace {

template <class Report>
void check_passed(Report const& report) {
  std::ostringstream text;
  text << report;
  CHECK_MESSAGE(report.passed(), text.str());
}

TEST_CASE("fold: check_forward and check_gradients accept heads of one operator") {
  std::vector<double> const minus_lambda{-0.8, -0.5};
  auto const op = fold(softmax_attention(mask::causal{}), {1.0, per_head(minus_lambda)});
  check_passed(
      testing::check_forward(op, {.heads = 2, .queries = 5, .keys = 150, .key_heads = 4, .value_heads = 2}, 1));
  auto const gradients =
      testing::check_gradients(op, {.heads = 2, .key_heads = 4, .value_heads = 2}, 2, {.entries = 4, .directions = 2});
  check_passed(gradients);
  index_t coefficients = 0;
  for (auto const& line : gradients.lines)
    if (line.name.starts_with("parameter fold.")) {
      ++coefficients;
      CHECK(line.differences.compared > 0);
    }
  CHECK(coefficients == 2);
}

TEST_CASE("fold: check_forward and check_gradients accept a fold of two operators") {
  std::vector<double> const by_query{0.5, -1, 2, 0.25, -0.125};
  auto const op = fold({0.75, per_query(by_query, 1)}, sink_attention(0.5), sparsemax_attention(mask::causal{}));
  check_passed(testing::check_forward(op, {.heads = 2, .queries = 5, .keys = 40}, 3));
  check_passed(testing::check_gradients(op, {.heads = 2, .queries = 5}, 4, {.entries = 4, .directions = 2}));
}

}  // namespace
}  // namespace attune::test
