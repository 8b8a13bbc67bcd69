// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// contraction::by_pair: a row of features for each pair, in a contraction with a term.
#include <string>
#include <tuple>
#include <vector>

#include <attune/attune.hpp>
#include <attune/testing/gradient_check.hpp>

#include "../../support/grid.hpp"
#include "../../support/report.hpp"
#include "../../unit/check.hpp"

namespace attune::test {
namespace {

TEST_CASE("grid: a row of features for each pair, its gradients") {
  std::vector<double> const rows = grid_numbers(49 * 2 * 3, 6);
  contextual k;
  k.values = tensor<double const>(rows, {1, 2, 49, 3});
  k.columns = 4, k.reach = 3;
  std::vector<double> const values = grid_numbers(49, 7);
  std::vector<index_t> const offsets{6, 2};
  auto const op = attention(k + grid_bias{tensor<double const>(values, {1, 1, 49, 1}), 4, 3}, mask::causal_window{5});
  auto const r = testing::check_gradients(
      op, {.batch = 2, .heads = 2, .queries = 3, .keys = 7, .width = 3, .offsets = offsets}, 6);
  CHECK_MESSAGE(r.passed(), printed(r));
  for (char const* of : {"input q", "table kernel.0.values", "table kernel.1.values"})
    CHECK(r.line(of).magnitude > 1e-3);
}

}  // namespace
}  // namespace attune::test
