// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The shortest complete program: compose an operator, run it fast, check it against the reference.
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

// [snippet: first_call]
#include <attune/attune.hpp>
#include <attune/reference.hpp>

int main() {
  using namespace attune;
  constexpr index_t batch = 1, heads = 4, queries = 100, keys = 120, width = 32;

  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  auto const make = [&](index_t positions, index_t features) {
    std::vector<float> x(std::size_t(batch * heads * positions * features));
    for (float& e : x) e = normal(random);
    return x;
  };
  std::vector<float> q = make(queries, width), k = make(keys, width), v = make(keys, width), out = make(queries, width);

  tensor Q(q, {batch, heads, queries, width}), K(k, {batch, heads, keys, width}), V(v, {batch, heads, keys, width});
  tensor O(out, {batch, heads, queries, width});

  auto op = attention(kernel::dot_product{}, normalizer::softmax{}, mask::causal{});
  forward(cpu{}, op, {.q = Q, .k = K, .v = V}, {.out = O});                              // fused, SIMD, all cores
  auto exact = forward(reference<double>{}, op, {.q = Q, .k = K, .v = V});               // dense, every intermediate kept
  auto row = forward_row(reference<digits50>{}, op, {.q = Q, .k = K, .v = V}, 0, 2, 7);  // one row with 50 digits
  // [/snippet]
  double worst = 0;
  for (index_t h = 0; h < heads; ++h)
    for (index_t i = 0; i < queries; ++i)
      for (index_t d = 0; d < width; ++d) worst = std::fmax(worst, std::fabs(O(0, h, i, d) - exact.at(0, h).out(i, d)));
  double const digits = std::fabs(double(row.out(0, 0)) - exact.at(0, 2).out(7, 0));
  std::printf("cpu against reference: %s\n", worst < 1e-5 ? "within 1e-5" : "TOO FAR");
  std::printf("reference against 50 digits: %s\n", digits < 1e-14 ? "within 1e-14" : "TOO FAR");
  return worst < 1e-5 && digits < 1e-14 ? 0 : 1;
}
