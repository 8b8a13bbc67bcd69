// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What the rows and keys of a call look like, without a table of weights: entropy, effective keys, what each key
// received.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

// [snippet: includes]
#include <attune/attune.hpp>
// [/snippet]
#include <attune/reference.hpp>

int main() {
  using namespace attune;
  constexpr index_t heads = 2, queries = 60, keys = 60, width = 16;
  std::mt19937 random(5);
  auto const make = [&] {
    std::vector<float> x(std::size_t(heads * keys * width));
    for (float& e : x) e = float(int(random() % 2048) - 1024) / 512;
    return x;
  };
  auto q = make(), k = make(), v = make(), out = make();
  shape const extents{1, heads, queries, width};
  tensor Q(q, extents), K(k, extents), V(v, extents), O(out, extents);

  // [snippet: statistics]
  auto op = attention(kernel::dot_product{}, normalizer::sink{1.0}, mask::causal{});
  auto rows = forward_and_save(cpu{}, op, {.q = Q, .k = K, .v = V}, {.out = O});
  auto s = statistics(cpu{}, op, {.q = Q, .k = K, .v = V}, rows, {.columns = true, .above = 0.1});

  float spread = s.effective_keys(s.at(0, 1, 50));  // of row 50 of head 1
  float received =
      s.columns[std::size_t(s.at_key(0, 1, 7))];   // by key 7 from all queries: what evicts keys from a cache
  head_statistics<float> head = head_means(s)[1];  // .mass, .ground_weight, .first_key, .entropy, ...
  // [/snippet]

  // [snippet: parts]
  statistics_request const wanted{.columns = true, .above = 0.1};
  auto first = statistics(cpu{}, op, {.q = Q, .k = K, .v = V}, rows, wanted, {0, 23});
  auto rest = statistics(cpu{}, op, {.q = Q, .k = K, .v = V}, rows, wanted, {23, keys});
  auto whole = merge(first, rest);
  // [/snippet]

  auto const exact = statistics(forward(reference<double>{}, op, {.q = Q, .k = K, .v = V}), wanted);
  double worst = std::fabs(double(spread) - exact.effective_keys(exact.at(0, 1, 50))) / 50;
  auto const differ = [&](std::vector<float> const& x, std::vector<double> const& y) {
    for (std::size_t n = 0; n < y.size(); ++n) worst = std::max(worst, std::fabs(double(x[n]) - y[n]));
  };
  differ(s.entropy, exact.entropy), differ(whole.entropy, exact.entropy);
  differ(s.columns, exact.columns), differ(whole.columns, exact.columns);
  std::printf("row 50 of head 1: %.1f effective keys of 51\n", double(spread));
  std::printf("key 7 of head 1: received %.2f\n", double(received));
  std::printf("head 1: mass %.2f, sink %.2f\n", double(head.mass), double(head.ground_weight));
  std::printf("against the definitions: %s\n", worst < 1e-5 ? "within 1e-5" : "TOO FAR");
  return worst < 1e-5 ? 0 : 1;
}
