// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Symbols of the sorted cache: one cache of one head that stays between calls, and the same tokens in the order of
// arrival.
#include <memory>
#include <vector>

#include <attune/attune.hpp>
#include <attune/line/decode.hpp>

using namespace attune;

namespace {

struct {
  std::unique_ptr<line::sorted_cache<float>> sorted;
  float const *sort_k, *k, *v;  // the caller's
  index_t keys, width, value_width;
} tokens;

}  // namespace

extern "C" {

/// k may be null: then width is 0. The arrays must stay.
void attune_cache_fill(float const* sort_k, float const* k, float const* v, int keys, int width, int value_width) {
  tokens = {
      std::make_unique<line::sorted_cache<float>>(line::cache_layout{.key_width = width, .value_width = value_width}),
      sort_k,
      k,
      v,
      keys,
      width,
      value_width};
  for (index_t j = 0; j < keys; ++j)
    tokens.sorted->insert({sort_k + j, 1}, {v + j * value_width, std::size_t(value_width)},
                          {k == nullptr ? nullptr : k + j * width, std::size_t(width)});
}

/// One row, certified. Returns the number of keys scored.
long attune_cache_decode(float const* sort_q, float const* q, float* out, float tau, double eps) {
  line::row_report report;
  line::certified const window{eps};
  tensor<float const> const Q(sort_q, {1, 1, 1, 1});
  line::decoded<float> const to{.out = {out, {1, 1, 1, tokens.value_width}}, .rows = {&report, 1}};
  if (q == nullptr)
    decode(cpu<float>{1}, line::windowed{double(tau), window}, *tokens.sorted, {.sort_q = Q}, to);
  else
    decode(cpu<float>{1}, line::hybrid{double(tau), window}, *tokens.sorted,
           {.sort_q = Q, .q = {q, {1, 1, 1, tokens.width}}}, to);
  return long(report.scored);
}

/// The same row over all tokens, fused.
void attune_cache_dense(float const* sort_q, float const* q, float* out, float tau, int threads) {
  tensor<float const> const Q(sort_q, {1, 1, 1, 1}), K(tokens.sort_k, {1, 1, tokens.keys, 1}),
      V(tokens.v, {1, 1, tokens.keys, tokens.value_width});
  tensor<float> const O(out, {1, 1, 1, tokens.value_width});
  if (q == nullptr)
    decode(cpu<float>{threads}, scalar_sort_attention(double(tau)), {.v = V, .sort_q = Q, .sort_k = K}, {.out = O});
  else
    decode(cpu<float>{threads}, hybrid_attention(double(tau)),
           {.q = {q, {1, 1, 1, tokens.width}},
            .k = {tokens.k, {1, 1, tokens.keys, tokens.width}},
            .v = V,
            .sort_q = Q,
            .sort_k = K},
           {.out = O});
}
}
