// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// mask::ragged: packed sequences against one call for each of them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <attune/attune.hpp>
#include <attune/line.hpp>
#include <attune/policies/mask/ragged.hpp>
#include <attune/reference.hpp>

#include "mask/rules.hpp"

namespace attune::test {
namespace {

using offsets = std::vector<index_t>;

// Sequences with as many queries as keys, fewer, more, none of either, and one of each.
offsets const of_queries{0, 5, 5, 75, 79, 79, 88, 89}, of_keys{0, 5, 12, 52, 182, 182, 182, 183};

constexpr index_t heads = 4, key_heads = 2, width = 8;

/// Tensors of packed sequences, (position, head, feature) as FlashAttention has them.
struct packed {
  offsets q_at, k_at;
  std::vector<float> q, k, v, by_out, sort_q, sort_k;

  packed(offsets of_q, offsets of_k) : q_at(std::move(of_q)), k_at(std::move(of_k)) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    auto const fill = [&](std::vector<float>& x, index_t positions, index_t numbers) {
      x.resize(std::size_t(positions * numbers));
      for (float& e : x) e = normal(random);
    };
    for (auto* x : {&q, &by_out}) fill(*x, q_at.back(), heads * width);
    for (auto* x : {&k, &v}) fill(*x, k_at.back(), key_heads * width);
    fill(sort_q, q_at.back(), heads);
    fill(sort_k, k_at.back(), key_heads);
  }
  index_t sequences() const { return index_t(q_at.size()) - 1; }
};

/// Positions [first, last) of a packed tensor.
template <class E>
tensor<E> part(E* x, index_t first, index_t last, index_t of_heads, index_t features = width) {
  return {
      x + first * of_heads * features, {1, of_heads, last - first, features}, {0, features, of_heads * features, 1}};
}

struct results {
  std::vector<float> out, lse, q, k, v;
};

/// out, lse and gradients of the queries [q0, q1) and keys [k0, k1), in one call, appended to r.
template <class Op>
void call(Op const& op, packed const& x, index_t q0, index_t q1, index_t k0, index_t k1, results& r) {
  inputs<Op, tensor<float const>> const in{.q = part(x.q.data(), q0, q1, heads),
                                           .k = part(x.k.data(), k0, k1, key_heads),
                                           .v = part(x.v.data(), k0, k1, key_heads)};
  std::vector<float> out(std::size_t((q1 - q0) * heads * width)), lse(std::size_t((q1 - q0) * heads));
  forward(cpu{serial{}}, op, in,
          {.out = part(out.data(), 0, q1 - q0, heads), .lse = natural_lse(part(lse.data(), 0, q1 - q0, heads, 1))});
  auto const g = vjp(cpu{serial{}}, op, in, {.out = part(x.by_out.data(), q0, q1, heads)});
  r.out.insert(r.out.end(), out.begin(), out.end());
  r.lse.insert(r.lse.end(), lse.begin(), lse.end());
  for (auto [to, f, of_heads] :
       {std::tuple{&r.q, field::q, heads}, {&r.k, field::k, key_heads}, {&r.v, field::v, key_heads}}) {
    auto const& d = g.of(f);  // (1, head, position, feature): put in the order of the packed tensors
    index_t const n = f == field::q ? q1 - q0 : k1 - k0;
    for (index_t i = 0; i < n; ++i)
      for (index_t h = 0; h < of_heads; ++h)
        for (index_t c = 0; c < width; ++c) to->push_back(d(0, h, i, c));
  }
}

/// One call for each sequence.
template <class Op>
results separate(Op const& op, packed const& x) {
  results r;
  for (std::size_t s = 0; s + 1 < x.q_at.size(); ++s)
    call(op, x, x.q_at[s], x.q_at[s + 1], x.k_at[s], x.k_at[s + 1], r);
  return r;
}
template <class Op>
results together(Op const& op, packed const& x) {
  results r;
  call(op, x, 0, x.q_at.back(), 0, x.k_at.back(), r);
  return r;
}

double distance(std::vector<float> const& x, std::vector<float> const& y) {
  double worst = x.size() == y.size() ? 0 : inf;
  for (std::size_t n = 0; n < x.size() && n < y.size(); ++n)
    if (x[n] != y[n]) worst = std::fmax(worst, std::fabs(double(x[n]) - double(y[n])));
  return worst;
}

/// log_n: the number of visible keys matters.
template <class Mask>
auto scaled(Mask const& m) {
  return attention(kernel::dot_product{}, length_scale::log_n{}, m);
}

/// Packed, with 32-bit offsets, against one call for each sequence.
auto ragged_causal(std::vector<std::int32_t> const& q, std::vector<std::int32_t> const& k) {
  return scaled(mask::ragged(q, k, mask::causal{}));
}
std::vector<std::int32_t> in_32_bits(offsets const& x) { return {x.begin(), x.end()}; }

TEST_CASE("ragged: outputs and gradients are those of a call for each sequence") {
  packed const x(of_queries, of_keys);
  auto const q = in_32_bits(x.q_at), k = in_32_bits(x.k_at);
  results const a = together(ragged_causal(q, k), x), b = separate(scaled(mask::causal{}), x);
  CHECK(distance(a.out, b.out) <= 1e-6);
  CHECK(distance(a.lse, b.lse) <= 2e-6);
  CHECK(distance(a.q, b.q) <= 4e-6);
  CHECK(distance(a.k, b.k) <= 4e-6);
  CHECK(distance(a.v, b.v) <= 4e-6);
}

TEST_CASE("ragged: outputs have the same bits where sequences begin at multiples of 64") {
  packed const x({0, 64, 128, 180}, {0, 128, 192, 250});
  auto const q = in_32_bits(x.q_at), k = in_32_bits(x.k_at);
  results const a = together(ragged_causal(q, k), x), b = separate(scaled(mask::causal{}), x);
  CHECK(a.out == b.out);
  CHECK(a.lse == b.lse);
}

TEST_CASE("ragged: decode, one query per sequence") {
  packed const x({0, 1, 2, 3}, {0, 100, 101, 350});
  auto const q = in_32_bits(x.q_at), k = in_32_bits(x.k_at);
  std::vector<float> out(x.q.size());
  decode(cpu{2}, ragged_causal(q, k),
         {.q = part(x.q.data(), 0, 3, heads),
          .k = part(x.k.data(), 0, 350, key_heads),
          .v = part(x.v.data(), 0, 350, key_heads)},
         {.out = part(out.data(), 0, 3, heads)});
  CHECK(distance(out, separate(scaled(mask::causal{}), x).out) <= 1e-6);
}

TEST_CASE("ragged: the reference executor") {
  packed const x(of_queries, of_keys);
  auto const q = in_32_bits(x.q_at), k = in_32_bits(x.k_at);
  auto const op = ragged_causal(q, k);
  auto const exact = forward(reference<double>{}, op,
                             {.q = part(x.q.data(), 0, x.q_at.back(), heads),
                              .k = part(x.k.data(), 0, x.k_at.back(), key_heads),
                              .v = part(x.v.data(), 0, x.k_at.back(), key_heads)});
  auto const fused = together(op, x).out;
  double worst = 0;
  for (index_t h = 0; h < heads; ++h)
    for (index_t i = 0; i < x.q_at.back(); ++i)
      for (index_t c = 0; c < width; ++c)
        worst = std::fmax(
            worst, std::fabs(exact.at(0, h).out(i, c) - double(fused[std::size_t((i * heads + h) * width + c)])));
  CHECK(worst <= 1e-6);
}

TEST_CASE("ragged: operators on a line") {
  packed const x(of_queries, of_keys);
  auto const run = [&](auto const& op, index_t q0, index_t q1, index_t k0, index_t k1, std::vector<float>& r) {
    std::vector<float> out(std::size_t((q1 - q0) * heads * width));
    forward(cpu{serial{}}, op,
            {.v = part(x.v.data(), k0, k1, key_heads),
             .sort_q = part(x.sort_q.data(), q0, q1, heads, 1),
             .sort_k = part(x.sort_k.data(), k0, k1, key_heads, 1)},
            {.out = part(out.data(), 0, q1 - q0, heads)});
    r.insert(r.end(), out.begin(), out.end());
  };
  std::vector<float> whole, parts;
  run(line::laplacian{0.5, mask::ragged(x.q_at, x.k_at, mask::causal{})}, 0, x.q_at.back(), 0, x.k_at.back(), whole);
  for (std::size_t s = 0; s + 1 < x.q_at.size(); ++s)
    run(line::laplacian{0.5, mask::causal{}}, x.q_at[s], x.q_at[s + 1], x.k_at[s], x.k_at[s + 1], parts);
  CHECK(distance(whole, parts) <= 1e-6);
}

}  // namespace
}  // namespace attune::test
