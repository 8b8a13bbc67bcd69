// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// An offset for each batch element on Thrust, and predicates with bounds: the bits of the calls without them.
#include <thrust/execution_policy.h>

#include <attune/thrust.hpp>

#include "../support/offset_calls.hpp"

namespace attune::test {
namespace {

TEST_CASE("thrust: offsets have the bits of separate calls") {
  offset_calls<float> const c;
  using view = tensor<float const>;
  std::vector<double> const by_distance = grid_numbers(42, 5), by_pair = grid_numbers(31, 6);
  auto const op = positional(by_distance, by_pair);
  auto const exec = thrust_on<float>(thrust::host);
  CHECK(same_output<float, view>(
      c, op, [&](auto const& in, tensor<float> const& out) { forward(exec, op, in, {.out = out}); }));
  check_gradients_of_parts<float, view>(exec, c, op, 1e-4);
}

TEST_CASE("thrust: a predicate with bounds has the bits of the predicate") {
  constexpr index_t rows = 6, columns = 7;
  grid_problem<float> const p(1, 2, rows * columns, 5, 25);
  auto const results = [&](auto const& mask) {
    auto const op = attention(kernel::dot_product{} + grid_bias{p.table(), columns, 2}, normalizer::softmax{}, mask);
    return grid_results(thrust_on<float>(thrust::host), op, p);
  };
  auto const plain = results(neighborhood{rows, columns, 1}), fast = results(bounded_neighborhood{{rows, columns, 1}});
  CHECK(plain.out == fast.out);
  CHECK(plain.q == fast.q);
  CHECK(plain.k == fast.k);
  CHECK(plain.v == fast.v);
  CHECK(plain.values == fast.values);
}

}  // namespace
}  // namespace attune::test
