// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The shortest complete program: compose an operator, run it fast, check it against the reference.
// [snippet: first_call]
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include <attune/attune.hpp>
#include <attune/reference.hpp>

int main() {
  using namespace attune;
  constexpr index_t batch = 1, heads = 4, queries = 100, keys = 120, width = 32;

  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  auto const make = [&](index_t positions) {
    std::vector<float> x(std::size_t(batch * heads * positions * width));
    for (float& e : x) e = normal(random);
    return x;
  };
  std::vector<float> q = make(queries), k = make(keys), v = make(keys), out = make(queries);
  tensor Q(q, {batch, heads, queries, width}), K(k, {batch, heads, keys, width}), V(v, {batch, heads, keys, width});
  tensor O(out, {batch, heads, queries, width});

  auto op = attention(kernel::dot_product{}, normalizer::softmax{}, mask::causal{});  // dot_product: <q, k> / sqrt(D)
  forward(cpu{}, op, {.q = Q, .k = K, .v = V}, {.out = O});                           // float, fused, SIMD, all cores
  auto exact = forward(reference<double>{}, op, {.q = Q, .k = K, .v = V});            // dense, every intermediate kept
  auto row = forward_row(reference<digits50>{}, op, {.q = Q, .k = K, .v = V}, 0, 2, 7);  // one row with 50 digits

  double const fast = std::fabs(O(0, 2, 7, 0) - exact.at(0, 2).out(7, 0));
  double const dense = std::fabs(double(row.out(0, 0)) - exact.at(0, 2).out(7, 0));
  std::printf("cpu against reference: %s\n", fast < 1e-5 ? "within 1e-5" : "TOO FAR");
  std::printf("reference against 50 digits: %s\n", dense < 1e-14 ? "within 1e-14" : "TOO FAR");
  return fast < 1e-5 && dense < 1e-14 ? 0 : 1;
}
// [/snippet]
