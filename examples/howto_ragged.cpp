// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Sequences of different lengths, packed one after the other: one call, compared with one call for each sequence.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

// [snippet: includes]
#include <attune/attune.hpp>

using namespace attune;
// [/snippet]

int main() {
  constexpr index_t heads = 8, key_heads = 2, width = 32;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  auto const make = [&](index_t count) {
    std::vector<float> x(static_cast<std::size_t>(count));
    for (float& e : x) e = normal(random);
    return x;
  };

  // [snippet: call]
  std::vector<std::int32_t> const new_tokens{5, 1, 40}, cached_tokens{5, 90, 64};  // per sequence: queries, keys
  auto const cu_seqlens_q = mask::cumulative_lengths(new_tokens);                  // 0, 5, 6, 46
  auto const cu_seqlens_k = mask::cumulative_lengths(cached_tokens);               // 0, 5, 95, 159
  index_t const queries = cu_seqlens_q.back(), keys = cu_seqlens_k.back();

  std::vector<float> q = make(queries * heads * width), k = make(keys * key_heads * width),
                     v = make(keys * key_heads * width);
  std::vector<float> out(q.size());
  auto const packed = [](auto* data, index_t total, index_t h) {  // (total, H, D), as varlen kernels take it
    return tensor(data, shape{1, h, total, width}, strides{0, width, h * width, 1});
  };
  auto op = attention(kernel::dot_product{}, mask::ragged(cu_seqlens_q, cu_seqlens_k, mask::causal{}));
  forward(cpu{}, op,
          {.q = packed(q.data(), queries, heads),
           .k = packed(k.data(), keys, key_heads),
           .v = packed(v.data(), keys, key_heads)},
          {.out = packed(out.data(), queries, heads)});
  // [/snippet]

  double worst = 0;
  auto const alone = attention(kernel::dot_product{}, mask::causal{});
  for (std::size_t s = 0; s < new_tokens.size(); ++s) {
    index_t const nq = new_tokens[s], nk = cached_tokens[s], q0 = cu_seqlens_q[s], k0 = cu_seqlens_k[s];
    std::vector<float> expected(static_cast<std::size_t>(nq * heads * width));
    forward(cpu{}, alone,
            {.q = packed(q.data() + q0 * heads * width, nq, heads),
             .k = packed(k.data() + k0 * key_heads * width, nk, key_heads),
             .v = packed(v.data() + k0 * key_heads * width, nk, key_heads)},
            {.out = packed(expected.data(), nq, heads)});
    for (std::size_t n = 0; n < expected.size(); ++n)
      worst = std::max(worst, std::fabs(double(expected[n] - out[static_cast<std::size_t>(q0 * heads * width) + n])));
  }
  std::printf("one packed call and three calls: %s\n", worst < 1e-6 ? "within 1e-6" : "TOO FAR");
  return worst < 1e-6 ? 0 : 1;
}
