// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// An offset for each batch element: the bits of one call for each of them.
#include <array>
#include <limits>
#include <span>
#include <vector>

#include <attune/attune.hpp>

#include "../../support/offset_calls.hpp"
#include "../../unit/check.hpp"

namespace attune::test {
namespace {

using view = tensor<float const>;

TEST_CASE("offsets: forward, decode, split and gradients have the bits of separate calls") {
  offset_calls<float> const c;
  std::vector<double> const by_distance = grid_numbers(42, 5), by_pair = grid_numbers(31, 6);
  auto const op = positional(by_distance, by_pair);
  CHECK(same_output<float, view>(
      c, op, [&](auto const& in, tensor<float> const& out) { forward(cpu<float>{2}, op, in, {.out = out}); }));
  CHECK(same_output<float, view>(
      c, op, [&](auto const& in, tensor<float> const& out) { decode(cpu<float>{2}, op, in, {.out = out}); }));
  CHECK(same_output<float, view>(c, op, [&](auto const& in, tensor<float> const& out) {
    auto states = accumulate(cpu<float>{1}, op, in, {40, 90});
    states = merge(std::move(states), accumulate(cpu<float>{1}, op, in, {0, 40}));
    finish(cpu<float>{1}, op, in, states, {.out = out});
  }));
  check_gradients_of_parts<float, view>(cpu<float>{2}, c, op, 1e-5);
}

TEST_CASE("offsets: equal ones are the offset of the call") {
  offset_calls<float> const c;
  std::vector<double> const by_distance = grid_numbers(42, 5), by_pair = grid_numbers(31, 6);
  auto const op = positional(by_distance, by_pair);
  using op_type = std::remove_const_t<decltype(op)>;
  std::vector<float> one(c.q.size()), several(c.q.size());
  auto in = c.all<op_type, view>();
  std::vector<index_t> const equal(3, 53);
  in.offsets = equal;
  forward(cpu<float>{1}, op, in, {.out = tensor<float>(several.data(), c.rows())});
  in.offsets = {};
  forward(cpu<float>{1}, op, in, {.out = tensor<float>(one.data(), c.rows())});
  CHECK(one == several);
}

TEST_CASE("offsets: what is wrong is named, before anything is written") {
  offset_calls<float> const c;
  std::vector<double> const by_distance = grid_numbers(42, 5), by_pair = grid_numbers(31, 6);
  auto const op = positional(by_distance, by_pair);
  using op_type = std::remove_const_t<decltype(op)>;
  std::vector<float> out(c.q.size(), 7);
  auto const text_of = [&](inputs<op_type, view> const& in) {
    return error_of([&] { forward(cpu<float>{1}, op, in, {.out = tensor<float>(out.data(), c.rows())}); });
  };
  auto in = c.all<op_type, view>();
  std::vector<index_t> const two{1, 2}, far{1, 2, std::numeric_limits<index_t>::max()};
  in.offsets = std::span<index_t const>();
  CHECK(text_of(in) == "attune::forward: offsets has 0 numbers; expected 3, one for each batch element of out");
  in.offsets = two;
  CHECK(text_of(in) == "attune::forward: offsets has 2 numbers; expected 3, one for each batch element of out");
  in.offsets = far;
  CHECK(text_of(in).find("attune::forward: offsets[2] has the value 9223372036854775807; expected a number in [") == 0);
  in.offsets = c.offsets, in.offset = 3;
  CHECK(text_of(in).find("attune::forward: offsets has numbers next to an offset; expected one of the two") == 0);
  CHECK(out == std::vector<float>(c.q.size(), 7));
}

}  // namespace
}  // namespace attune::test
