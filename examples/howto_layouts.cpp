// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Causal attention with grouped heads on (B, L, H, D) tensors, on an interleaved (B, L, 3, H, D) buffer, and with a
// bias that batch elements and heads share: all of it by strides, without a copy.
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

// [snippet: includes]
#include <attune/attune.hpp>

using namespace attune;
// [/snippet]

std::vector<float> random_numbers(index_t count) {
  static std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<std::size_t>(count));
  for (float& e : x) e = normal(random);
  return x;
}

// [snippet: blhd]
/// A dense (B, L, H, D) array as the view (batch, head, position, feature) that attune takes.
template <class E>
tensor<E> blhd(E* data, index_t B, index_t L, index_t H, index_t D) {
  return {data, shape{B, H, L, D}, strides{L * H * D, D, H * D, 1}};
}
// [/snippet]

/// out of dense (B, H, L, D) copies.
template <class Op>
std::vector<float> from_copies(Op const& op, tensor<float const> q, tensor<float const> k, tensor<float const> v) {
  auto const copy = [](tensor<float const> x) {
    shape const s = x.extents();
    std::vector<float> to;
    for (index_t b = 0; b < s.batch; ++b)
      for (index_t h = 0; h < s.head; ++h)
        for (index_t i = 0; i < s.position; ++i)
          for (index_t d = 0; d < s.feature; ++d) to.push_back(x(b, h, i, d));
    return to;
  };
  auto const qs = copy(q), ks = copy(k), vs = copy(v);
  std::vector<float> out(qs.size());
  forward(cpu{}, op, {.q = tensor(qs, q.extents()), .k = tensor(ks, k.extents()), .v = tensor(vs, v.extents())},
          {.out = tensor(out, q.extents())});
  return out;
}

int main() {
  constexpr index_t B = 2, L = 70, H = 8, Hk = 2, D = 32;
  std::vector<float> const q = random_numbers(B * L * H * D), k = random_numbers(B * L * Hk * D),
                           v = random_numbers(B * L * Hk * D);
  std::vector<float> out(q.size());

  // [snippet: gqa]
  auto op = attention(kernel::dot_product{}, mask::causal{});
  auto Q = blhd(q.data(), B, L, H, D);                                    // 8 query heads
  auto K = blhd(k.data(), B, L, Hk, D), V = blhd(v.data(), B, L, Hk, D);  // 2 key heads, each for 4 query heads
  forward(cpu{}, op, {.q = Q, .k = K, .v = V}, {.out = blhd(out.data(), B, L, H, D)});
  // [/snippet]

  auto const same = [&](std::vector<float> const& copies, tensor<float> x) {
    bool equal = true;
    for (index_t b = 0, n = 0; b < B; ++b)
      for (index_t h = 0; h < H; ++h)
        for (index_t i = 0; i < L; ++i)
          for (index_t d = 0; d < D; ++d) equal = equal && x(b, h, i, d) == copies[static_cast<std::size_t>(n++)];
    return equal;
  };
  bool const strided = same(from_copies(op, Q, K, V), blhd(out.data(), B, L, H, D));
  std::printf("(B, L, H, D) and (B, H, L, D): %s\n", strided ? "the same bits" : "DIFFERENT");

  std::vector<float> const qkv = random_numbers(B * L * 3 * H * D);
  // [snippet: interleaved]
  // qkv is (B, L, 3, H, D), as one projection of the activations writes it.
  shape const extents{B, H, L, D};
  strides const steps{L * 3 * H * D, D, 3 * H * D, 1};
  tensor q_part(qkv.data(), extents, steps), k_part(qkv.data() + H * D, extents, steps),
      v_part(qkv.data() + 2 * H * D, extents, steps);
  forward(cpu{}, op, {.q = q_part, .k = k_part, .v = v_part}, {.out = blhd(out.data(), B, L, H, D)});
  // [/snippet]
  bool const interleaved = same(from_copies(op, q_part, k_part, v_part), blhd(out.data(), B, L, H, D));
  std::printf("(B, L, 3, H, D) and copies: %s\n", interleaved ? "the same bits" : "DIFFERENT");

  // [snippet: shared]
  std::vector<float> const bias = random_numbers(L * L);
  tensor shared(bias, {1, 1, L, L});  // one table for all batch elements and heads
  auto biased = attention(kernel::dot_product{} + kernel::bias{}, mask::causal{});
  forward(cpu{}, biased, {.q = Q, .k = K, .v = V, .bias = shared}, {.out = blhd(out.data(), B, L, H, D)});
  auto g = vjp(cpu{}, biased, {.q = Q, .k = K, .v = V, .bias = shared}, {.out = Q});
  float slope = g.of(field::bias)(0, 0, 5, 3);  // summed over batch elements and heads
  // [/snippet]
  shape const by_bias = g.of(field::bias).extents;
  std::printf("gradient by the shared bias: %s\n",
              by_bias == shape{1, 1, L, L} && std::isfinite(slope) ? "(1, 1, Lq, Lk)" : "WRONG");
  return strided && interleaved ? 0 : 1;
}
