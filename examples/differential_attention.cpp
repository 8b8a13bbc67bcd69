// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Differential attention (Ye 2024): softmax(q1 k1) v - lambda softmax(q2 k2) v, with the gradient by a learned lambda.
// Both terms see the same noise; the difference keeps what only the first one sees.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include <attune/attune.hpp>

int main() {
  using namespace attune;
  constexpr index_t heads = 4, queries = 6, keys = 20, width = 8, value_width = 16;
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  auto const make = [&](index_t numbers) {
    std::vector<float> x(static_cast<std::size_t>(numbers));
    for (float& e : x) e = normal(random);
    return x;
  };
  auto q = make(2 * heads * queries * width), k = make(2 * heads * keys * width), v = make(heads * keys * value_width);
  auto out = make(heads * queries * value_width), by_out = make(heads * queries * value_width);
  tensor O(out, {1, heads, queries, value_width}), DO(by_out, {1, heads, queries, value_width});

  // [snippet: fold]
  std::vector<float> minus_lambda(heads, -0.8f);  // one per head of out; must outlive the operator
  auto op = fold(softmax_attention(mask::causal{}), {1.0, per_head(minus_lambda)});
  tensor Q(q, {1, 2 * heads, queries, width});  // heads 2h and 2h + 1 are the two terms of head h of out
  tensor K(k, {1, 2 * heads, keys, width});     // grouped as always: 2 H heads, or a divisor of it
  tensor V(v, {1, heads, keys, value_width});   // H heads: both terms of a head read the same values
  forward(cpu{}, op, {.q = Q, .k = K, .v = V}, {.out = O});
  auto g = vjp(cpu{}, op, {.q = Q, .k = K, .v = V}, {.out = DO});
  auto const by_minus_lambda = g.parameter("fold.1");  // one number per head
  // [/snippet]

  // The objective sum <by_out, out> moves as its gradient says.
  auto const objective = [&] {
    forward(cpu{}, op, {.q = Q, .k = K, .v = V}, {.out = O});
    double sum = 0;
    for (std::size_t n = 0; n < out.size(); ++n) sum += double(by_out[n]) * double(out[n]);
    return sum;
  };
  double worst = 0;
  for (std::size_t h = 0; h < minus_lambda.size(); ++h) {
    float const there = minus_lambda[h];
    minus_lambda[h] = there + 0.25f;
    double const high = objective();
    minus_lambda[h] = there - 0.25f;
    double const low = objective();
    minus_lambda[h] = there;
    worst = std::max(worst, std::fabs((high - low) / 0.5 - double(by_minus_lambda.values[h])));  // linear: exact
  }
  std::printf("gradient by lambda: %s\n", worst < 1e-3 ? "within 1e-3 of differences" : "TOO FAR");
  return worst < 1e-3 ? 0 : 1;
}
