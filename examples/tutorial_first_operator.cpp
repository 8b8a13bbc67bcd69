// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Causal attention of four tokens. The values are an identity matrix, so the output is the table of weights.
// [snippet: program]
#include <cstdio>
#include <vector>

#include <attune/attune.hpp>

int main() {
  using namespace attune;
  // 4 queries and 4 keys of 2 features; 4 values of 4 features: value j is 1 at place j.
  std::vector<float> q{1, 0, 0, 1, 1, 1, 2, 0};
  std::vector<float> k{1, 0, 0, 1, 1, 1, 0, 2};
  std::vector<float> v{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
  std::vector<float> out(16);
  // Views of shape (batch, head, position, feature): nothing is copied.
  tensor Q(q, {1, 1, 4, 2}), K(k, {1, 1, 4, 2}), V(v, {1, 1, 4, 4}), O(out, {1, 1, 4, 4});

  auto op = attention(kernel::dot_product{}, normalizer::softmax{}, mask::causal{});
  forward(cpu{}, op, {.q = Q, .k = K, .v = V}, {.out = O});

  for (index_t i = 0; i < 4; ++i)
    std::printf("%.3f %.3f %.3f %.3f\n", O(0, 0, i, 0), O(0, 0, i, 1), O(0, 0, i, 2), O(0, 0, i, 3));
}
// [/snippet]
