// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// contraction::gathered_by_pair: the bias and the mask of NATTEN against an independent loop.
#include <vector>

#include <attune/attune.hpp>

#include "../../support/grid.hpp"
#include "../../unit/check.hpp"

namespace attune::test {
namespace {

TEST_CASE("grid: the bias and the mask of NATTEN; pairs that nobody sees have no row") {
  constexpr index_t rows = 9, columns = 11, radius = 2;
  grid_problem<double> const p(1, 2, rows * columns, 4, 81);
  grid_problem<float> const rounded(1, 2, rows * columns, 4, 81);
  auto const op_of = [](auto const& of) {
    return attention(kernel::dot_product{} + grid_bias{of.table(), columns, 2 * radius}, normalizer::softmax{},
                     neighborhood{rows, columns, radius});
  };
  auto const row = [](index_t i, index_t j) {
    return (i / columns - j / columns + 4) * 9 + (i % columns - j % columns + 4);
  };
  auto const start = [](index_t at, index_t extent) {
    return at < radius ? 0 : at > extent - 1 - radius ? extent - 1 - 2 * radius : at - radius;
  };
  auto const right = grid_loop(p, row, [&](index_t i, index_t j) {
    index_t const y = j / columns - start(i / columns, rows), x = j % columns - start(i % columns, columns);
    return 0 <= y && y < 5 && 0 <= x && x < 5;
  });
  check_grid(grid_results(cpu<double>{1}, op_of(p), p), right, 1e-13);
  check_grid(grid_results(cpu<float>{2}, op_of(rounded), rounded), right, 2e-5);
}

}  // namespace
}  // namespace attune::test
