// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The code of docs/howto/rotary.md: rotary embeddings of Llama and GPT-J, a longer context, a cache of turned keys.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

// [snippet: includes]
#include <attune/attune.hpp>

using namespace attune;
// [/snippet]

std::vector<float> drawn(index_t n, double seed) {
  std::vector<float> x;
  for (index_t i = 0; i < n; ++i) x.push_back(float(std::sin(seed + 1.7 * double(i) + std::cos(double(i)))));
  return x;
}
double distance(float const* x, float const* y, index_t n) {
  double worst = 0;
  for (index_t i = 0; i < n; ++i) worst = std::max(worst, std::fabs(double(x[i]) - double(y[i])));
  return worst;
}

int main() {
  constexpr index_t heads = 4, key_heads = 2, length = 96, width = 64;
  auto q = drawn(heads * length * width, 1), k = drawn(key_heads * length * width, 2),
       v = drawn(key_heads * length * width, 3);
  std::vector<float> out(q.size()), other(q.size());
  shape const of_queries{1, heads, length, width}, of_keys{1, key_heads, length, width};
  tensor<float const> const Q(q.data(), of_queries), K(k.data(), of_keys), V(v.data(), of_keys);
  tensor<float> const O(out, of_queries), P(other, of_queries);

  // [snippet: llama]
  rotary_angles angles(rotary_frequencies::plain(width, 10000), length);  // once: cosines and sines of all positions
  auto const llama = attention(kernel::rotary{angles}, mask::causal{});
  forward(cpu{}, llama, {.q = Q, .k = K, .v = V}, {.out = O});
  // [/snippet]
  auto const by_hand = attention(kernel::dot_product{}, mask::causal{});
  auto turned_q = q, turned_k = k;
  angles.turn(rotary_layout::half, tensor<float>(turned_q, of_queries));
  angles.turn(rotary_layout::half, tensor<float>(turned_k, of_keys));
  forward(cpu{}, by_hand,
          {.q = tensor<float const>(turned_q.data(), of_queries),
           .k = tensor<float const>(turned_k.data(), of_keys),
           .v = V},
          {.out = P});
  std::printf("Llama: %s\n", distance(out.data(), other.data(), index_t(out.size())) < 1e-6 ? "as by hand" : "WRONG");

  // [snippet: gptj]
  rotary_angles some(rotary_frequencies::plain(width / 4), length);  // a quarter of the features turns
  auto const gptj = attention(kernel::rotary{.angles = some, .layout = rotary_layout::interleaved}, mask::causal{});
  // [/snippet]
  forward(cpu{}, gptj, {.q = Q, .k = K, .v = V}, {.out = P});
  std::printf("GPT-J: %s\n",
              distance(out.data(), other.data(), index_t(out.size())) > 1e-3 ? "another result" : "WRONG");

  // [snippet: longer]
  double const scale = 4;  // context length / training length
  rotary_angles ntk(rotary_frequencies::ntk(width, scale), length);
  rotary_angles yarn(rotary_frequencies::yarn(width, scale, length / 4), length);
  // [/snippet]
  std::printf("slowest pair, plain, NTK and YaRN: %.1e %.1e %.1e\n", rotary_frequencies::plain(width).values.back(),
              rotary_frequencies::ntk(width, scale).values.back(),
              rotary_frequencies::yarn(width, scale, length / 4).values.back());
  forward(cpu{}, attention(kernel::rotary{ntk}), {.q = Q, .k = K, .v = V}, {.out = P});
  forward(cpu{}, attention(kernel::rotary{yarn}), {.q = Q, .k = K, .v = V}, {.out = P});

  // [snippet: images]
  std::vector<float> places;  // (batch, 1, patch, axis): row and column of each patch
  for (index_t n = 0; n < length; ++n) places.push_back(float(n / 12)), places.push_back(float(n % 12));
  rotary_angles of_patches(rotary_frequencies::plain(width / 2, 100).on_axes(2),
                           tensor<float const>(places, shape{1, 1, length, 2}));
  auto const image = attention(kernel::rotary{.angles = {of_patches, of_patches}});
  // [/snippet]
  forward(cpu{}, image, {.q = Q, .k = K, .v = V}, {.out = P});

  // A cache of pages with the keys of the call above, turned when they arrive.
  constexpr index_t page = 16, pages = length / page;
  std::vector<std::int32_t> const numbers{5, 0, 3, 1, 4, 2};
  std::vector<float> k_pages(k.size()), v_pages(v.size());
  shape const in_pages{pages, key_heads, page, width};
  tensor<float> const cache_k(k_pages, in_pages), cache_v(v_pages, in_pages);
  for (index_t j = 0; j < length; ++j)
    for (index_t h = 0; h < key_heads; ++h)
      for (index_t d = 0; d < width; ++d) {
        index_t const p = numbers[std::size_t(j / page)];
        cache_k(p, h, j % page, d) = K(0, h, j, d);
        cache_v(p, h, j % page, d) = V(0, h, j, d);
      }
  // [snippet: cache]
  for (index_t first = 0; first < length; first += page) {  // a page of new keys at a time, at positions first, ...
    tensor<float> const arrived(cache_k.row(numbers[std::size_t(first / page)], 0, 0),
                                shape{1, key_heads, page, width});
    angles.turn(rotary_layout::half, arrived, first);
  }
  auto const cached = attention(kernel::rotary{.angles = angles, .keys = rotary_keys::turned}, mask::causal{});
  std::vector<float> last(heads * width);  // the newest query: its offset is Lk - 1 by default
  tensor<float const> const newest(Q.row(0, 0, length - 1), {1, heads, 1, width}, Q.steps());
  decode(cpu{}, cached, {.q = newest, .k = cache_k, .v = cache_v}, page_table(numbers, 1),
         {.out = tensor<float>(last, shape{1, heads, 1, width})});
  // [/snippet]
  double worst = 0;
  for (index_t h = 0; h < heads; ++h)
    worst = std::max(worst, distance(last.data() + h * width, O.row(0, h, length - 1), width));
  std::printf("pages of turned keys: %s\n", worst < 1e-6 ? "as the whole call" : "WRONG");
  return 0;
}
