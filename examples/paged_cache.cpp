// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Two sequences of different lengths in one bfloat16 cache of pages, as an inference server keeps them: one query each.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <utility>
#include <vector>

// [snippet: includes]
#include <attune/attune.hpp>
// [/snippet]

int main() {
  using namespace attune;
  constexpr index_t batch = 2, heads = 8, key_heads = 2, width = 64, pages = 12, page = 16;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  auto const draw = [&](index_t n) {
    std::vector<bfloat16> x;
    while (index_t(x.size()) < n) x.emplace_back(normal(random));
    return x;
  };
  auto q = draw(batch * heads * width), k_cache = draw(pages * page * key_heads * width),
       v_cache = draw(index_t(k_cache.size()));
  std::vector<bfloat16> out(q.size());
  tensor Q(std::as_const(q), shape{batch, heads, 1, width});
  tensor O(out, shape{batch, heads, 1, width});

  // [snippet: pages]
  // (page, key, head, feature) in memory; other layouts need other strides.
  shape const extents{pages, key_heads, page, width};
  strides const steps{page * key_heads * width, width, key_heads * width, 1};
  tensor<bfloat16 const> K(k_cache.data(), extents, steps), V(v_cache.data(), extents, steps);

  std::vector<std::int32_t> numbers{7, 2, 11, 4,    // sequence 0: 57 keys
                                    3, 9, -1, -1};  // sequence 1: 20 keys
  std::vector<index_t> lengths{57, 20};
  auto op =
      attention(kernel::dot_product{}, length_scale::log_n{}, mask::padding(lengths));  // K: the keys of each sequence
  decode(cpu<bfloat16>{}, op, {.q = Q, .k = K, .v = V}, page_table(numbers, batch), {.out = O});
  // [/snippet]

  // The same, one sequence after the other, copied together as floats.
  double worst = 0;
  auto const alone = attention(kernel::dot_product{}, length_scale::log_n{});
  for (index_t b = 0; b < batch; ++b) {
    index_t const keys = lengths[std::size_t(b)];
    std::vector<float> qs, ks, vs, os(std::size_t(heads * width));
    for (index_t h = 0; h < heads; ++h)
      for (index_t d = 0; d < width; ++d) qs.push_back(float(Q(b, h, 0, d)));
    for (index_t h = 0; h < key_heads; ++h)
      for (index_t j = 0; j < keys; ++j)
        for (index_t d = 0; d < width; ++d) {
          index_t const at = numbers[std::size_t(b * 4 + j / page)];
          ks.push_back(float(K(at, h, j % page, d)));
          vs.push_back(float(V(at, h, j % page, d)));
        }
    shape const kv{1, key_heads, keys, width}, one{1, heads, 1, width};
    forward(cpu{}, alone, {.q = tensor(qs, one), .k = tensor(ks, kv), .v = tensor(vs, kv)}, {.out = tensor(os, one)});
    for (index_t n = 0; n < heads * width; ++n) {
      float const paged = float(out[std::size_t(b * heads * width + n)]);
      worst = std::max(worst, double(std::fabs(os[std::size_t(n)] - paged)));
    }
  }
  std::printf("pages of bfloat16 and floats in one piece: %s\n", worst < 1e-2 ? "within 1e-2" : "TOO FAR");
  return worst < 1e-2 ? 0 : 1;
}
