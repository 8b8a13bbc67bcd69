// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The keys of every row in two parts, as two machines would take them: states, merged, finished, and differentiated.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

// [snippet: includes]
#include <attune/attune.hpp>
// [/snippet]

int main() {
  using namespace attune;
  constexpr index_t heads = 2, queries = 50, keys = 90, width = 16;
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  auto const make = [&](index_t positions) {
    std::vector<float> x(std::size_t(heads * positions * width));
    for (float& e : x) e = normal(random);
    return x;
  };
  auto q = make(queries), k = make(keys), v = make(keys), whole = make(queries), merged = whole, by_out = make(queries);
  tensor Q(q, {1, heads, queries, width}), K(k, {1, heads, keys, width}), V(v, {1, heads, keys, width});
  tensor O(whole, {1, heads, queries, width}), M(merged, {1, heads, queries, width});
  tensor DO(by_out, {1, heads, queries, width});

  // [snippet: split]
  std::vector<float> sinks{0.5f, -1.0f};  // one logit per head; must outlive the operator
  auto op = attention(kernel::dot_product{}, normalizer::sink{per_head(sinks)}, mask::causal{});
  auto first = accumulate(cpu{}, op, {.q = Q, .k = K, .v = V}, {0, 41});  // tensors and mask of the whole problem,
  auto rest = accumulate(cpu{}, op, {.q = Q, .k = K, .v = V}, {41, 90});  // so that K counts all visible keys
  finish(cpu{}, op, {.q = Q, .k = K, .v = V}, merge(rest, first), {.out = M});
  // [/snippet]

  // [snippet: gradients]
  auto const saved = merge(rest, first);  // the states of all keys: what forward_and_save would have kept
  auto const g = vjp(cpu{}, op, {.q = Q, .k = K, .v = V}, saved, {.out = DO});
  // [/snippet]

  forward(cpu{}, op, {.q = Q, .k = K, .v = V}, {.out = O});
  double worst = 0;
  for (std::size_t n = 0; n < whole.size(); ++n) worst = std::max(worst, std::fabs(double(whole[n] - merged[n])));
  std::printf("split and merged: %s\n", worst < 1e-5 ? "within 1e-5" : "TOO FAR");
  auto const unsplit = vjp(cpu{}, op, {.q = Q, .k = K, .v = V}, {.out = DO});
  double worst_gradient = 0;
  for (field const f : {field::q, field::k, field::v})
    for (std::size_t n = 0; n < g.of(f).values.size(); ++n)
      worst_gradient = std::max(worst_gradient, std::fabs(double(g.of(f).values[n] - unsplit.of(f).values[n])));
  std::printf("gradients from merged states: %s\n", worst_gradient < 1e-5 ? "within 1e-5" : "TOO FAR");
  return worst < 1e-5 && worst_gradient < 1e-5 ? 0 : 1;
}
