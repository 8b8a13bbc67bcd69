// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Rotary embeddings with an offset for each batch element: the bits of one call for each of them.
#include <cmath>
#include <vector>

#include <attune/attune.hpp>

#include "../../support/offset_calls.hpp"
#include "../../unit/check.hpp"

namespace attune::test {
namespace {

using view = tensor<float const>;

TEST_CASE("rotary: offsets turn the queries of each batch element by their own positions") {
  offset_calls<float> const c({53, 20, 0});
  rotary_angles<float> const angles(rotary_frequencies::plain(4), c.queries + 53);  // the last query reads the last row
  for (rotary_keys const keys : {rotary_keys::plain, rotary_keys::turned}) {
    auto const op = attention(kernel::rotary{.angles = angles, .keys = keys}, mask::causal{});
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
}

TEST_CASE("rotary: decode and forward turn by the same offsets") {
  offset_calls<float> const c({53, 20, 0});
  rotary_angles<float> const angles(rotary_frequencies::plain(4), c.queries + 53);
  auto const op = attention(kernel::rotary{angles}, mask::causal{});
  using op_type = std::remove_const_t<decltype(op)>;
  std::vector<float> out(c.q.size()), decoded(c.q.size());
  forward(cpu<float>{2}, op, c.all<op_type, view>(), {.out = tensor<float>(out.data(), c.rows())});
  decode(cpu<float>{2}, op, c.all<op_type, view>(), {.out = tensor<float>(decoded.data(), c.rows())});
  double worst = 0;
  for (std::size_t n = 0; n < out.size(); ++n) worst = std::fmax(worst, std::fabs(double(out[n]) - double(decoded[n])));
  CHECK(worst < 1e-5);
}

}  // namespace
}  // namespace attune::test
