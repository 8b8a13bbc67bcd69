// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Rotary embeddings with the caches of decode: pages, 16 bits and 8 bits give what their numbers give in one piece.
#include <cmath>
#include <cstdint>
#include <vector>

#include <attune/attune.hpp>
#include <attune/float8_cache.hpp>

#include "../../unit/check.hpp"

namespace attune::test {
namespace {

constexpr index_t heads = 4, key_heads = 2, queries = 2, keys = 192, width = 24, page = 64;
constexpr shape of_queries{1, heads, queries, width}, of_keys{1, key_heads, keys, width};

/// q, k and v as E, and as the floats that they mean.
template <class E>
struct cached {
  std::vector<E> k, v;
  std::vector<float> wide_q, wide_k, wide_v;
  cached() {
    auto const number = [](index_t n) { return float(std::sin(1.7 * double(n) + std::cos(double(n)))); };
    for (index_t n = 0; n < of_queries.size(); ++n) wide_q.push_back(float(bfloat16(number(n))));
    for (index_t n = 0; n < of_keys.size(); ++n) {
      k.push_back(E(number(n + 7)));
      v.push_back(E(number(n + 9)));
      wide_k.push_back(float(k.back()));
      wide_v.push_back(float(v.back()));
    }
  }
  template <class Op>
  std::vector<float> decoded(Op const& op) const {
    std::vector<float> out(wide_q.size());
    decode(cpu{2}, op, {.q = tensor(wide_q, of_queries), .k = tensor(wide_k, of_keys), .v = tensor(wide_v, of_keys)},
           {.out = tensor(out, of_queries)});
    return out;
  }
  template <class Op>
  std::vector<float> whole(Op const& op) const {
    std::vector<float> out(wide_q.size());
    forward(cpu{2}, op, {.q = tensor(wide_q, of_queries), .k = tensor(wide_k, of_keys), .v = tensor(wide_v, of_keys)},
            {.out = tensor(out, of_queries)});
    return out;
  }
};
template <class E>
bool equal(std::vector<E> const& x, std::vector<float> const& y) {
  bool same = x.size() == y.size();
  for (std::size_t n = 0; same && n < x.size(); ++n) same = float(x[n]) == float(E(y[n]));
  return same;
}

struct rotated {
  rotary_angles<float> angles{rotary_frequencies::plain(20), keys};
  auto operator()(rotary_keys stored) const {
    return attention(kernel::rotary{.angles = angles, .layout = rotary_layout::interleaved, .keys = stored},
                     mask::causal{});
  }
};

TEST_CASE("rotary: decode from 16 bits and from pages, forward from 16 bits") {
  cached<bfloat16> const c;
  rotated const rotary;
  std::vector<bfloat16> q, out(c.wide_q.size());
  for (float x : c.wide_q) q.emplace_back(x);
  tensor<bfloat16 const> const Q(q.data(), of_queries), K(c.k.data(), of_keys), V(c.v.data(), of_keys);
  tensor<bfloat16> const O(out.data(), of_queries);
  for (auto const stored : {rotary_keys::plain, rotary_keys::turned}) {
    auto const op = rotary(stored);
    auto const expected = c.decoded(op);
    decode(cpu<bfloat16>{2}, op, {.q = Q, .k = K, .v = V}, {.out = O});
    CHECK(equal(out, expected));
    // (page, head, key, feature) views of the same memory: page n of head h is at K(0, h, n * page, 0).
    std::vector<std::int32_t> const numbers{0, 1, 2};
    shape const pages{keys / page, key_heads, page, width};
    strides const steps{page * width, keys * width, width, 1};
    decode(cpu<bfloat16>{2}, op,
           {.q = Q,
            .k = tensor<bfloat16 const>(c.k.data(), pages, steps),
            .v = tensor<bfloat16 const>(c.v.data(), pages, steps)},
           page_table(numbers, 1), {.out = O});
    CHECK(equal(out, expected));
    forward(cpu<bfloat16>{2}, op, {.q = Q, .k = K, .v = V}, {.out = O});
    CHECK(equal(out, c.whole(op)));
  }
}

TEST_CASE("rotary: 8-bit keys and values") {
  cached<float8_e4m3fn> const c;
  rotated const rotary;
  using view = float8_view<float, float8_e4m3fn>;
  tensor<float const> const Q(c.wide_q.data(), of_queries);
  view const K(tensor<float8_e4m3fn const>(c.k.data(), of_keys), 1.f),
      V(tensor<float8_e4m3fn const>(c.v.data(), of_keys), 1.f);
  std::vector<float> out(c.wide_q.size());
  for (auto const stored : {rotary_keys::plain, rotary_keys::turned}) {
    auto const op = rotary(stored);
    decode(cpu_float8_cache<float8_e4m3fn>{2}, op, {.q = Q, .k = K, .v = V}, {.out = tensor(out, of_queries)});
    CHECK(out == c.decoded(op));
    forward(cpu_float8_cache<float8_e4m3fn>{2}, op, {.q = Q, .k = K, .v = V}, {.out = tensor(out, of_queries)});
    CHECK(out == c.whole(op));
  }
}

}  // namespace
}  // namespace attune::test
