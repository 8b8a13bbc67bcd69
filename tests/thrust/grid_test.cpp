// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// contraction::gathered_by_pair on Thrust: the windows of Swin and the neighborhoods of NATTEN against an independent
// loop.
#include "../support/grid.hpp"

#include <thrust/execution_policy.h>

#include <attune/thrust.hpp>

namespace attune::test {
namespace {

TEST_CASE("thrust: the relative position bias of Swin, a window of 4 x 4 and two heads") {
  grid_problem<float> const p(3, 2, 16, 5, 49);
  auto const op = attention(kernel::dot_product{} + grid_bias{p.table(), 4, 3}, normalizer::softmax{});
  auto const row = [](index_t i, index_t j) { return (i / 4 - j / 4 + 3) * 7 + (i % 4 - j % 4 + 3); };
  check_grid(grid_results(thrust_on<float>(thrust::host), op, p),
             grid_loop(p, row, [](index_t, index_t) { return true; }), 2e-5);
}

TEST_CASE("thrust: the bias and the mask of NATTEN") {
  constexpr index_t rows = 7, columns = 6, radius = 1;
  grid_problem<double> const p(1, 2, rows * columns, 4, 25);
  auto const op = attention(kernel::dot_product{} + grid_bias{p.table(), columns, 2 * radius}, normalizer::softmax{},
                            neighborhood{rows, columns, radius});
  auto const row = [](index_t i, index_t j) {
    return (i / columns - j / columns + 2) * 5 + (i % columns - j % columns + 2);
  };
  auto const start = [](index_t at, index_t extent) {
    return at < radius ? 0 : at > extent - 1 - radius ? extent - 1 - 2 * radius : at - radius;
  };
  check_grid(grid_results(thrust_on<double>(thrust::host), op, p),
             grid_loop(p, row,
                       [&](index_t i, index_t j) {
                         index_t const y = j / columns - start(i / columns, rows),
                                       x = j % columns - start(i % columns, columns);
                         return 0 <= y && y < 3 && 0 <= x && x < 3;
                       }),
             1e-13);
}

}  // namespace
}  // namespace attune::test
