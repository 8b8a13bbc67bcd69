// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Calls of PyTorch and the same calls here, compared with the plain formula in double.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <random>
#include <vector>

// [snippet: includes]
#include <attune/attune.hpp>

using namespace attune;
// [/snippet]

namespace {

constexpr index_t B = 2, H = 4, Hk = 2, Lq = 20, Lk = 30, D = 16;

std::vector<float> random_numbers(index_t count) {
  static std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<std::size_t>(count));
  for (float& e : x) e = normal(random);
  return x;
}

/// softmax(score(<q, k>, b, h, i, j)) v with key heads shared by groups; a score of -inf hides the pair.
using score_function = std::function<double(double dot, index_t b, index_t h, index_t i, index_t j)>;
double error_of(tensor<float const> q, tensor<float const> k, tensor<float const> v, tensor<float const> out,
                score_function const& score) {
  double worst = 0;
  for (index_t b = 0; b < B; ++b)
    for (index_t h = 0; h < H; ++h)
      for (index_t i = 0; i < Lq; ++i) {
        std::vector<double> sum(static_cast<std::size_t>(D));
        double z = 0;
        for (index_t j = 0; j < Lk; ++j) {
          double dot = 0;
          for (index_t d = 0; d < D; ++d) dot += double(q(b, h, i, d)) * double(k(b, h * Hk / H, j, d));
          double const w = std::exp(score(dot, b, h, i, j));
          z += w;
          for (index_t d = 0; d < D; ++d) sum[static_cast<std::size_t>(d)] += w * double(v(b, h * Hk / H, j, d));
        }
        for (index_t d = 0; d < D; ++d)
          worst = std::max(worst, std::fabs(double(out(b, h, i, d)) - sum[static_cast<std::size_t>(d)] / z));
      }
  return worst;
}

}  // namespace

int main() {
  std::vector<float> const q = random_numbers(B * H * Lq * D), k = random_numbers(B * Hk * Lk * D),
                           v = random_numbers(B * Hk * Lk * D);
  std::vector<float> out(q.size()), lse(static_cast<std::size_t>(B * H * Lq));
  tensor Q(q, {B, H, Lq, D}), K(k, {B, Hk, Lk, D}), V(v, {B, Hk, Lk, D});
  tensor O(out, {B, H, Lq, D}), L(lse, {B, H, Lq, 1});
  double const hidden = -std::numeric_limits<double>::infinity();
  double worst = 0;

  // [snippet: sdpa]
  // F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.2, enable_gqa=True)
  auto causal = attention(kernel::dot_product{.scale = 0.2}, mask::causal{});
  forward(cpu{}, causal, {.q = Q, .k = K, .v = V, .offset = 0}, {.out = O, .lse = natural_lse(L)});
  // [/snippet]
  worst = std::max(worst, error_of(Q, K, V, O, [&](double dot, index_t, index_t, index_t i, index_t j) {
                     return j <= i ? 0.2 * dot : hidden;
                   }));

  std::vector<unsigned char> attn_mask(static_cast<std::size_t>(B * Lq * Lk), 1);
  for (std::size_t n = 0; n < attn_mask.size(); n += 3) attn_mask[n] = 0;
  auto const bias_of_pairs = random_numbers(Lq * Lk);
  // [snippet: masks]
  // attn_mask, boolean, (B, 1, Lq, Lk), True where a query sees a key: bytes, 1 for True
  mask::runtime seen;
  seen.visible = attn_mask.data();
  seen.visible_shape = {B, 1, Lq, Lk};
  // attn_mask, floating point, (Lq, Lk), added to the scores
  tensor bias(bias_of_pairs, {1, 1, Lq, Lk});
  auto masked = attention(kernel::dot_product{} + kernel::bias{}, seen);
  forward(cpu{}, masked, {.q = Q, .k = K, .v = V, .bias = bias}, {.out = O});
  // [/snippet]
  worst = std::max(worst, error_of(Q, K, V, O, [&](double dot, index_t b, index_t, index_t i, index_t j) {
                     if (attn_mask[static_cast<std::size_t>((b * Lq + i) * Lk + j)] == 0) return hidden;
                     return dot / 4 + double(bias(0, 0, i, j));
                   }));

  // [snippet: flex]
  // def score_mod(score, b, h, q_idx, kv_idx): return 20 * torch.tanh((score - slope[h] * abs(q_idx - kv_idx)) / 20)
  // def mask_mod(b, h, q_idx, kv_idx): return (kv_idx <= q_idx) & (q_idx - kv_idx < 8)
  // flex_attention(q, k, v, score_mod, create_block_mask(mask_mod, None, None, Lq, Lk), enable_gqa=True)
  std::vector<float> slope{0.5f, 0.25f, 0.125f, 0.0625f};  // must outlive the operator
  auto flex =
      attention((kernel::dot_product{} + kernel::alibi{per_head(slope)}) | kernel::softcap{20}, mask::causal_window{8});
  forward(cpu{}, flex, {.q = Q, .k = K, .v = V, .offset = 0}, {.out = O});
  // [/snippet]
  worst =
      std::fmax(worst, error_of(Q, K, V, O, [&](double dot, index_t, index_t h, index_t i, index_t j) {
                  if (j > i || i - j >= 8) return hidden;
                  return 20 * std::tanh((dot / 4 - double(slope[static_cast<std::size_t>(h)]) * double(i - j)) / 20);
                }));

  std::printf("three calls and their formulas: %s\n", worst < 1e-5 ? "within 1e-5" : "TOO FAR");
  return worst < 1e-5 ? 0 : 1;
}
