// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// One query over two keys with equal logits: the output is the mean of their values.
#include <cstdio>
#include <vector>

#include <attune/attune.hpp>
#if defined(WITH_REFERENCE)
#include <attune/reference.hpp>
#endif

int main() {
  using namespace attune;
  std::vector<float> q{1, 0}, k{0, 1, 0, -1}, v{1, 2, 3, 4}, out(2);
  tensor Q(q, {1, 1, 1, 2}), K(k, {1, 1, 2, 2}), V(v, {1, 1, 2, 2}), O(out, {1, 1, 1, 2});
  auto const op = attention(kernel::dot_product{}, normalizer::softmax{});
  forward(cpu{}, op, {.q = Q, .k = K, .v = V}, {.out = O});
  std::printf("attune %d: %g %g\n", ATTUNE_VERSION, double(out[0]), double(out[1]));
#if defined(WITH_REFERENCE)
  auto const exact = forward(reference<double>{}, op, {.q = Q, .k = K, .v = V});
  if (exact.at(0, 0).out(0, 0) != 2) return 1;
#endif
  return out[0] == 2 && out[1] == 3 ? 0 : 1;
}
