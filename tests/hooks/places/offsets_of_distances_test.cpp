// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// An offset for each batch element where a contraction has faster code by distance; and on the reference.
#include <vector>

#include <attune/attune.hpp>
#include <attune/reference.hpp>

#include "../../support/offset_calls.hpp"
#include "../../unit/check.hpp"

namespace attune::test {
namespace {

TEST_CASE("offsets: products with distances and Fourier series have the bits of separate calls") {
  offset_calls<float> const c;
  using view = tensor<float const>;
  std::vector<double> const bias = grid_numbers(5, 5), relative = grid_numbers(301 * 5, 6), waves = grid_numbers(9, 7);
  auto const term = [&](index_t n) { return table(tensor<double const>(waves.data() + 3 * n, {1, 1, 3, 1})); };
  tensor<double const> const one(bias.data(), {1, 1, 1, 5}), rows(relative.data(), {1, 1, 301, 5});
  auto const op = attention(kernel::xl_position{one, rows, {}} + kernel::fourier_prior{term(0), term(1), term(2)},
                            normalizer::softmax{}, mask::causal_window{60});
  CHECK(same_output<float, view>(
      c, op, [&](auto const& in, tensor<float> const& out) { forward(cpu<float>{2}, op, in, {.out = out}); }));
  check_gradients_of_parts<float, view>(cpu<float>{2}, c, op, 2e-4);
}

TEST_CASE("offsets: the reference agrees with separate calls") {
  offset_calls<double> const c;
  std::vector<double> const by_distance = grid_numbers(42, 5), by_pair = grid_numbers(31, 6);
  auto const op = positional(by_distance, by_pair);
  CHECK(same_output<double, any_tensor>(
      c, op, [&](auto const& in, tensor<double> const& out) { forward(reference<double>{}, op, in, {.out = out}); }));
  check_gradients_of_parts<double, any_tensor>(reference<double>{}, c, op, 1e-12);
}

}  // namespace
}  // namespace attune::test
