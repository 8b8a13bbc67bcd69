// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A cache sorted by a number per token: a row reads the keys near its query, and says how much it may have missed.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

// [snippet: includes]
#include <attune/attune.hpp>
#include <attune/line.hpp>
// [/snippet]

int main() {
  using namespace attune;
  constexpr index_t heads = 4, groups = 2, width = 32, tokens = 20000;
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  auto const numbers = [&](index_t count) {
    std::vector<float> x(static_cast<std::size_t>(count));
    for (float& e : x) e = uniform(random);
    return x;
  };

  // [snippet: fill]
  line::sorted_cache<float> kv({.heads = heads, .value_groups = groups, .value_width = width});
  std::vector<float> sort_k, v;  // also kept as plain tensors here, to compare
  for (index_t j = 0; j < tokens; ++j) {
    std::vector<float> const keys = numbers(heads), values = numbers(groups * width);
    kv.insert(keys, values);
    sort_k.insert(sort_k.end(), keys.begin(), keys.end());
    v.insert(v.end(), values.begin(), values.end());
  }
  // [/snippet]

  auto const sort_q = numbers(heads);
  std::vector<float> out(heads * width), dense(out.size());
  shape const rows{1, heads, 1, 1}, to{1, heads, 1, width};
  tensor Q(sort_q, rows);
  tensor O(out, to);
  // [snippet: decode]
  std::vector<double> const tau{1e-4, 1e-3, 1e-2, 1e-1};  // one per head
  std::vector<line::row_report> reports(heads);
  line::windowed const op{per_head(tau), line::certified{1e-6}};
  decode(cpu{}, op, kv, {.sort_q = Q}, {.out = O, .rows = reports});
  // [/snippet]

  // The same by reading everything: token j's keys and values lie side by side, hence the strides.
  decode(cpu{}, scalar_sort_attention(per_head(tau)),
         {.v = tensor<float const>(v.data(), {1, groups, tokens, width}, {0, width, groups * width, 1}),
          .sort_q = Q,
          .sort_k = tensor<float const>(sort_k.data(), {1, heads, tokens, 1}, {0, 1, heads, 1})},
         {.out = tensor<float>(dense, to)});
  bool good = true;
  for (std::size_t h = 0; h < heads; ++h) {
    auto const& r = reports[h];
    double error = 0;
    for (std::size_t d = h * width; d < (h + 1) * width; ++d)
      error = std::max(error, std::fabs(double(out[d] - dense[d])));
    bool const kept = r.discarded <= 1e-6 && error <= 1e-5;
    std::printf("tau %g: %s of %d keys read, %s\n", tau[h],
                double(r.scored) < 0.1 * tokens ? "less than a tenth"
                : r.scored < tokens             ? "a part"
                                                : "all",
                int(tokens), kept ? "weight missing <= 1e-6" : "TOO FAR");
    good = good && kept;
  }
  return good ? 0 : 1;
}
