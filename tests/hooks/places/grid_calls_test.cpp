// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// contraction::gathered_by_pair: decode, directional derivatives and rows of features for each pair.
#include <vector>

#include <attune/attune.hpp>

#include "../../support/grid.hpp"
#include "../../unit/check.hpp"

namespace attune::test {
namespace {

template <class Op>
void check_decode(Op const& op, grid_problem<float> const& p) {
  std::vector<float> out(p.q.size()), decoded(p.q.size());
  inputs<Op, tensor<float const>> const in{.q = p.of(p.q), .k = p.of(p.k), .v = p.of(p.v)};
  forward(cpu<float>{1}, op, in, {.out = tensor<float>(out.data(), p.extents())});
  decode(cpu<float>{1}, op, in, {.out = tensor<float>(decoded.data(), p.extents())});
  CHECK(grid_error(decoded, out) < 1e-6);
}

/// The derivative along a direction of the table and of q, from jvp and from the gradients.
template <class Op>
void check_jvp(Op const& op, grid_problem<double> const& p, grid_result const& right) {
  std::vector<double> const along = grid_numbers(p.values.size(), 8), along_q = grid_numbers(p.q.size(), 9);
  auto const r = jvp(cpu<double>{1}, op, {.q = {p.of(p.q), p.of(along_q)}, .k = p.of(p.k), .v = p.of(p.v)},
                     {.tables = {{"values", tensor<double const>(along.data(), {1, p.heads, p.entries, 1})}}});
  double forward_mode = 0, reverse_mode = 0;
  for (std::size_t n = 0; n < p.q.size(); ++n) {
    forward_mode += r.out_along.values[n] * p.by_out[n];
    reverse_mode += right.q[n] * along_q[n];
  }
  for (std::size_t n = 0; n < along.size(); ++n) reverse_mode += right.values[n] * along[n];
  CHECK(near(forward_mode, reverse_mode, 1e-10));
}

TEST_CASE("grid: decode and jvp of a bias for each pair") {
  grid_problem<double> const p(1, 2, 16, 3, 49);
  grid_problem<float> const rounded(1, 2, 16, 3, 49);
  auto const op_of = [](auto const& of) {
    return attention(kernel::dot_product{} + grid_bias{of.table(), 4, 3}, normalizer::softmax{},
                     mask::causal_window{7});
  };
  check_decode(op_of(rounded), rounded);
  auto const right = grid_loop(
      p, [](index_t i, index_t j) { return (i / 4 - j / 4 + 3) * 7 + (i % 4 - j % 4 + 3); },
      [](index_t i, index_t j) { return j <= i && i - j < 7; });
  check_jvp(op_of(p), p, right);
}

}  // namespace
}  // namespace attune::test
