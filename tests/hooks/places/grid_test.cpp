// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// contraction::gathered_by_pair: the windows of Swin against an independent loop.
#include "../../support/grid.hpp"

#include <vector>

#include <attune/attune.hpp>

#include "../../unit/check.hpp"

namespace attune::test {
namespace {

TEST_CASE("grid: the relative position bias of Swin, a window of 4 x 4 and two heads") {
  grid_problem<double> const p(3, 2, 16, 5, 49);
  grid_problem<float> const rounded(3, 2, 16, 5, 49);
  auto const op_of = [](auto const& of) {
    return attention(kernel::dot_product{} + grid_bias{of.table(), 4, 3}, normalizer::softmax{});
  };
  auto const row = [](index_t i, index_t j) { return (i / 4 - j / 4 + 3) * 7 + (i % 4 - j % 4 + 3); };
  auto const right = grid_loop(p, row, [](index_t, index_t) { return true; });
  check_grid(grid_results(cpu<double>{1}, op_of(p), p), right, 1e-13);
  check_grid(grid_results(cpu<double>{3}, op_of(p), p), right, 1e-13);
  check_grid(grid_results(cpu<float>{1}, op_of(rounded), rounded), right, 2e-5);
}

}  // namespace
}  // namespace attune::test
