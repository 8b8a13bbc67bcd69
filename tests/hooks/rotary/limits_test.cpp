// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Limits of rotary embeddings: no angle, a shift of all positions, keys stored turned, the two layouts.
#include <cmath>
#include <vector>

#include <attune/exec/cpu/decode.hpp>
#include <attune/exec/cpu/forward.hpp>
#include <attune/exec/cpu/gradients.hpp>
#include <attune/policies.hpp>

#include "../../unit/check.hpp"

namespace attune::test {
namespace {

constexpr index_t batch = 2, heads = 4, key_heads = 2, queries = 70, keys = 150, width = 72;
constexpr shape of_queries{batch, heads, queries, width}, of_keys{batch, key_heads, keys, width};

using numbers = std::vector<float>;
numbers drawn(index_t n, double seed) {
  numbers x;
  for (index_t i = 0; i < n; ++i) x.push_back(float(std::sin(seed + 1.7 * double(i) + 0.1 * std::cos(double(i)))));
  return x;
}
struct results {
  numbers out, decoded, dq, dk;
  bool operator==(results const&) const = default;
};
double distance(numbers const& x, numbers const& y) {
  double worst = x.size() == y.size() ? 0 : inf;
  for (std::size_t n = 0; n < y.size() && n < x.size(); ++n)
    worst = std::fmax(worst, std::fabs(double(x[n]) - double(y[n])));
  return worst;
}

struct problem {
  numbers q = drawn(of_queries.size(), 1), k = drawn(of_keys.size(), 2), v = drawn(of_keys.size(), 3),
          d = drawn(of_queries.size(), 4);

  template <class Kernel>
  results run(Kernel const& kernel) const {
    using view = tensor<float const>;
    auto const op = attention(kernel, mask::causal{});
    inputs<std::remove_const_t<decltype(op)>, view> const in{
        .q = view(q, of_queries), .k = view(k, of_keys), .v = view(v, of_keys)};
    results to{numbers(q.size()), numbers(q.size()), {}, {}};
    auto const saved = forward_and_save(cpu{2}, op, in, {.out = tensor<float>(to.out, of_queries)});
    decode(cpu{2}, op, in, {.out = tensor<float>(to.decoded, of_queries)});
    auto const g = vjp(cpu{2}, op, in, saved, {.out = view(d, of_queries)});
    to.dq = g.of(field::q).values;
    to.dk = g.of(field::k).values;
    return to;
  }
};

/// x with the rows of one head after the other turned: row n by position n + shift.
numbers turned(numbers const& x, shape const& e, rotary_angles<double> const& by, rotary_layout layout) {
  numbers y = x;
  for (index_t row = 0; row < e.batch * e.head * e.position; ++row)
    for (index_t r = 0; r < by.pairs(); ++r) {
      rotary_pair const at(layout, by.pairs(), r);
      double const c = by.values()(0, 0, row % e.position, r), s = by.values()(0, 0, row % e.position, by.pairs() + r),
                   a = x[std::size_t(row * width + at.first)], b = x[std::size_t(row * width + at.second)];
      y[std::size_t(row * width + at.first)] = float(c * a - s * b);
      y[std::size_t(row * width + at.second)] = float(c * b + s * a);
    }
  return y;
}

TEST_CASE("rotary: without an angle it has the bits of the dot product") {
  problem const p;
  rotary_frequencies still = rotary_frequencies::plain(width - 6);
  for (double& w : still.values) w = 0;
  rotary_angles<float> const angles(still, keys);
  results const dot = p.run(kernel::dot_product{});
  CHECK(p.run(kernel::rotary{angles}) == dot);
  CHECK(p.run(kernel::rotary{.angles = angles, .layout = rotary_layout::interleaved}) == dot);
}

TEST_CASE("rotary: the same shift of all positions changes nothing beyond rounding") {
  problem const p;
  auto const f = rotary_frequencies::plain(width);
  auto const given = [&](index_t first, index_t n) {
    std::vector<double> positions;
    for (index_t i = 0; i < n; ++i) positions.push_back(double(first + i));
    return rotary_angles<double>(f, tensor<double const>(positions, shape{1, 1, n, 1}));
  };
  rotary_angles<double> const counted(f, keys), q1 = given(keys - queries + 1000000, queries),
                                                k1 = given(1000000, keys);
  results const here = p.run(kernel::rotary{counted}), there = p.run(kernel::rotary{.angles = {q1, k1}});
  CHECK(distance(there.out, here.out) < 1e-6);
  CHECK(distance(there.decoded, here.out) < 1e-6);
  CHECK(distance(there.dq, here.dq) < 4e-6);
  CHECK(distance(there.dk, here.dk) < 1e-5);
  CHECK(distance(p.run(kernel::dot_product{}).out, here.out) > 0.01);  // the angles matter
}

TEST_CASE("rotary: keys stored turned give the same result") {
  problem const p;
  rotary_angles<double> const angles(rotary_frequencies::plain(width - 8, 100), keys);
  for (auto const layout : {rotary_layout::half, rotary_layout::interleaved}) {
    problem stored;
    stored.k = turned(p.k, of_keys, angles, layout);
    results const inside = p.run(kernel::rotary{.angles = angles, .layout = layout}),
                  outside = stored.run(kernel::rotary{.angles = angles, .layout = layout, .keys = rotary_keys::turned});
    CHECK(distance(outside.out, inside.out) < 1e-6);
    CHECK(distance(outside.decoded, inside.out) < 1e-6);
    CHECK(distance(outside.dq, inside.dq) < 4e-6);
    // The gradient is by the turned keys: turned as the keys are, the gradient by plain keys.
    CHECK(distance(outside.dk, turned(inside.dk, of_keys, angles, layout)) < 1e-5);
  }
}

TEST_CASE("rotary: the interleaved layout is the half layout of permuted features") {
  problem const p;
  index_t const pairs = width / 2 - 2;
  rotary_angles<float> const angles(rotary_frequencies::plain(2 * pairs), keys);
  auto const permuted = [&](numbers const& x) {
    numbers y = x;
    for (std::size_t row = 0; row < x.size() / width; ++row)
      for (index_t r = 0; r < pairs; ++r) {
        y[row * width + std::size_t(2 * r)] = x[row * width + std::size_t(r)];
        y[row * width + std::size_t(2 * r + 1)] = x[row * width + std::size_t(r + pairs)];
      }
    return y;
  };
  problem other;
  other.q = permuted(p.q);
  other.k = permuted(p.k);
  results const half = p.run(kernel::rotary{angles}),
                interleaved = other.run(kernel::rotary{.angles = angles, .layout = rotary_layout::interleaved});
  CHECK(distance(interleaved.out, half.out) < 1e-6);
  CHECK(distance(interleaved.dq, permuted(half.dq)) < 4e-6);
  CHECK(distance(interleaved.dk, permuted(half.dk)) < 1e-5);
}

TEST_CASE("rotary: a key in the future of a query never reaches it, and no bit depends on threads") {
  problem p;
  rotary_angles<float> const angles(rotary_frequencies::plain(width), keys);
  results const before = p.run(kernel::rotary{angles});
  CHECK(p.run(kernel::rotary{angles}) == before);
  for (index_t h = 0; h < batch * key_heads; ++h)  // the last key: seen by the last query alone
    p.k[std::size_t((h * keys + keys - 1) * width + 3)] = float(nan);
  results const after = p.run(kernel::rotary{angles});
  for (index_t row = 0; row < batch * heads * queries; ++row) {
    bool const last = row % queries == queries - 1;
    for (index_t d = 0; d < width; ++d) {
      std::size_t const n = std::size_t(row * width + d);
      CHECK(std::isnan(after.out[n]) == last);
      CHECK(std::isnan(after.dq[n]) == last);
      if (!last) CHECK(after.out[n] == before.out[n]);
      if (!last) CHECK(near(double(after.dq[n]), double(before.dq[n]), 1e-4));
    }
  }
}

}  // namespace
}  // namespace attune::test
