// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   simulated_gradients g = run_backward(problem, cotangent, backward_kind{...}, planted_backward{...})
//
// Backward passes of attention as they are written for devices, in float on one thread: weights from a saved lse, a row
// term from the stored output, tiles, storage of 16 bits. Each may have one defect. Independent of attune's code.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "simulated_kernel.hpp"

namespace attune::test {

/// A way to compute gradients that is right.
struct backward_kind {
  storage stored = storage::fp32;    ///< of out and the gradients
  storage products = storage::fp32;  ///< weights and dS are rounded to it before they multiply
  index_t tile = 32;                 ///< of keys and of queries
  bool backwards = false;            ///< the last tile first
  index_t lanes = 1;                 ///< partial sums of dot products and of a tile
  storage lse = storage::fp32;       ///< of the saved lse: 16 bits are wrong
};

/// What may be wrong.
enum class backward_fault {
  none,
  scale_of_logits,  ///< the weights are recomputed with a scale times 1 + size
  dq_factor,        ///< times 1 + size
  dk_factor,
  dv_factor,
  dq_scale_missing,  ///< dq lacks the scale 1 / sqrt D
  dk_scale_missing,
  row_term_missing,
  row_term_bf16,
  row_term_fp16,
  row_term_late,  ///< of the next query
  dp_bf16,
  dp_fp16,
  ds_bf16,
  ds_fp16,
  weights_bf16,
  weights_fp16,
  logits_bf16,
  logits_fp16,
  dq_sum_bf16,  ///< rounded after each tile
  dq_sum_fp16,
  dk_sum_bf16,
  dk_sum_fp16,
  dv_sum_bf16,
  dv_sum_fp16,
  group_alone,  ///< keys get the gradient of the first head of their group
  group_bf16,   ///< heads of a group are added in 16 bits
  group_fp16,
  through_maximum,  ///< the row term is missing from the key with the largest weight
  unnormalized_dv,  ///< dv from e^(s - max)
  mask_later,
  mask_earlier,
  mask_ignored,
  mask_top_left,
  lse_off,          ///< the saved lse, plus size
  lse_late,         ///< the lse of the next query
  keys_skipped,     ///< dq lacks `size` keys in the middle
  queries_skipped,  ///< dk and dv lack `size` queries in the middle
  next_key_head,    ///< reads keys and values of the next key head
  count
};

/// A defect of a backward pass.
struct planted_backward {
  backward_fault what = backward_fault::none;
  planted where{};  ///< place and size
};

struct simulated_gradients {
  std::vector<float> dq, dk, dv;
};

inline simulated_gradients run_backward(simulated_problem const& p, std::vector<float> const& dout,
                                        backward_kind const& kind, planted_backward const& d = {}) {
  using wrong = backward_fault;
  kernel_kind forward;
  forward.stored = kind.stored;
  forward.weights = kind.products;
  forward.tile = kind.tile;
  forward.lanes = kind.lanes;
  simulated_result const saved = run(p, forward);
  index_t const group = p.heads / p.key_heads, value_group = p.heads / p.value_heads;
  simulated_gradients r;
  r.dq.assign(saved.out.size(), 0);
  r.dk.assign(p.k.size(), 0);
  r.dv.assign(p.v.size(), 0);
  float const scale = float(1 / std::sqrt(double(p.width)));
  auto const in = [](storage s, float x) { return float(rounded_to(s, x)); };
  std::vector<float> row_terms(saved.lse.size());
  for (std::size_t row = 0; row < row_terms.size(); ++row)
    for (std::size_t c = 0; c < std::size_t(p.width); ++c)
      row_terms[row] += dout[row * std::size_t(p.width) + c] * saved.out[row * std::size_t(p.width) + c];
  std::size_t const width = std::size_t(p.width);
  auto const walk = [&](index_t n, auto const& visit, auto const& after_tile) {
    index_t const tiles = (n + kind.tile - 1) / kind.tile;
    for (index_t t = 0; t < tiles; ++t) {
      index_t const first = (kind.backwards ? tiles - 1 - t : t) * kind.tile;
      for (index_t m = first; m < std::min(n, first + kind.tile); ++m) visit(m);
      after_tile();
    }
  };
  struct pair_numbers {
    float for_values = 0, ds = 0;  ///< as they enter the products
  };
  std::vector<pair_numbers> pairs(std::size_t(p.queries * p.keys));
  detail::lane_sums dots(kind.lanes, 1), part(kind.lanes, p.width);
  for (index_t b = 0; b < p.batch; ++b)
    for (index_t h = 0; h < p.heads; ++h) {
      index_t const own = h / group, own_value = h / value_group;
      std::size_t const first_row = std::size_t((b * p.heads + h) * p.queries);
      for (index_t i = 0; i < p.queries; ++i) {
        bool const hit = d.where.hits(p, b, h, i);
        auto const is = [&](wrong f) { return hit && d.what == f; };
        index_t const late = is(wrong::next_key_head) ? 1 : 0, head = (own + late) % p.key_heads,
                      value_head = (own_value + late) % p.value_heads;
        index_t const end = is(wrong::mask_ignored)    ? p.keys
                            : is(wrong::mask_top_left) ? p.keys_of(i, p.queries - p.keys)
                                                       : p.keys_of(i, is(wrong::mask_later)     ? 1
                                                                      : is(wrong::mask_earlier) ? -1
                                                                                                : 0);
        std::size_t const row = first_row + std::size_t(i),
                          next = first_row + std::size_t(std::min(i + 1, p.queries - 1));
        float lse = saved.lse[is(wrong::lse_late) ? next : row];
        lse = in(kind.lse, lse);
        if (is(wrong::lse_off)) lse += float(d.where.size);
        float row_term = row_terms[is(wrong::row_term_late) ? next : row];
        if (is(wrong::row_term_missing)) row_term = 0;
        if (is(wrong::row_term_bf16)) row_term = in(storage::bf16, row_term);
        if (is(wrong::row_term_fp16)) row_term = in(storage::fp16, row_term);
        float const* given = dout.data() + row * width;
        std::vector<float> s(std::size_t(p.keys), -INFINITY);
        for (index_t j = 0; j < end; ++j) {
          float x = detail::dot(dots, p.query(b, h, i), p.key(b, head, j), p.width);
          x *= is(wrong::scale_of_logits) ? scale * float(1 + d.where.size) : scale;
          if (is(wrong::logits_bf16)) x = in(storage::bf16, x);
          if (is(wrong::logits_fp16)) x = in(storage::fp16, x);
          s[std::size_t(j)] = x;
        }
        auto const top = std::max_element(s.begin(), s.end()) - s.begin();
        for (index_t j = 0; j < p.keys; ++j) {
          pair_numbers& to = pairs[std::size_t(i * p.keys + j)];
          to = {};
          if (j >= end) continue;
          float const w = std::exp(s[std::size_t(j)] - lse);
          float dp = detail::dot(dots, given, p.value(b, value_head, j), p.width);
          if (is(wrong::dp_bf16)) dp = in(storage::bf16, dp);
          if (is(wrong::dp_fp16)) dp = in(storage::fp16, dp);
          float ds = w * (dp - row_term);
          if (is(wrong::through_maximum) && j == top) ds -= row_term;
          if (is(wrong::ds_bf16)) ds = in(storage::bf16, ds);
          if (is(wrong::ds_fp16)) ds = in(storage::fp16, ds);
          float for_values = is(wrong::unnormalized_dv) ? std::exp(s[std::size_t(j)] - s[std::size_t(top)]) : w;
          if (is(wrong::weights_bf16)) for_values = in(storage::bf16, for_values);
          if (is(wrong::weights_fp16)) for_values = in(storage::fp16, for_values);
          to = {in(kind.products, for_values), in(kind.products, ds)};
        }
        std::vector<float> sum(width, 0);
        part.clear();
        index_t const lost = index_t(d.where.size), from = end / 2;
        walk(
            end,
            [&](index_t j) {
              if (is(wrong::keys_skipped) && j >= from && j < from + lost) return;
              float* const to = part.at(j);
              for (std::size_t c = 0; c < width; ++c)
                to[c] += pairs[std::size_t(i * p.keys + j)].ds * p.key(b, head, j)[c];
            },
            [&] {
              float const* const tile = part.total();
              for (std::size_t c = 0; c < width; ++c) {
                sum[c] += tile[c];
                if (is(wrong::dq_sum_bf16)) sum[c] = in(storage::bf16, sum[c]);
                if (is(wrong::dq_sum_fp16)) sum[c] = in(storage::fp16, sum[c]);
              }
              part.clear();
            });
        for (std::size_t c = 0; c < width; ++c) {
          float x = sum[c] * (is(wrong::dq_scale_missing) ? 1 : scale);
          if (is(wrong::dq_factor)) x *= float(1 + d.where.size);
          r.dq[row * width + c] = in(kind.stored, x);
        }
      }
      // Keys: every query of the head adds to them. A place chooses heads, batch elements and queries.
      for (index_t j = 0; j < p.keys; ++j) {
        auto const adds = [&](std::vector<float>& to, bool values) {
          std::vector<float> sum(width, 0);
          part.clear();
          bool some = false;
          auto const is = [&](wrong f) { return some && d.what == f; };
          index_t const lost = index_t(d.where.size), from = p.queries / 2;
          walk(
              p.queries,
              [&](index_t i) {
                bool const hit = d.where.hits(p, b, h, i);
                some = some || hit;
                if (d.what == wrong::queries_skipped && hit && i >= from && i < from + lost) return;
                if (d.what == wrong::group_alone && hit && h % group != 0) return;
                pair_numbers const& x = pairs[std::size_t(i * p.keys + j)];
                float const* other = values ? dout.data() + (first_row + std::size_t(i)) * width : p.query(b, h, i);
                float by = values ? x.for_values : x.ds * (hit && d.what == wrong::dk_scale_missing ? 1 : scale);
                if (hit && d.what == (values ? wrong::dv_factor : wrong::dk_factor)) by *= float(1 + d.where.size);
                float* const to_lane = part.at(i);
                for (std::size_t c = 0; c < width; ++c) to_lane[c] += by * other[c];
              },
              [&] {
                float const* const tile = part.total();
                for (std::size_t c = 0; c < width; ++c) {
                  sum[c] += tile[c];
                  if (is(values ? wrong::dv_sum_bf16 : wrong::dk_sum_bf16)) sum[c] = in(storage::bf16, sum[c]);
                  if (is(values ? wrong::dv_sum_fp16 : wrong::dk_sum_fp16)) sum[c] = in(storage::fp16, sum[c]);
                }
                part.clear();
              });
          index_t const to_head = values ? b * p.value_heads + own_value : b * p.key_heads + own;
          float* row = to.data() + std::size_t(to_head * p.keys + j) * width;
          for (std::size_t c = 0; c < width; ++c) {
            row[c] += sum[c];
            if (is(wrong::group_bf16)) row[c] = in(storage::bf16, row[c]);
            if (is(wrong::group_fp16)) row[c] = in(storage::fp16, row[c]);
          }
        };
        adds(r.dk, false);
        adds(r.dv, true);
      }
    }
  for (auto* x : {&r.dk, &r.dv})
    for (float& y : *x) y = in(kind.stored, y);
  return r;
}

}  // namespace attune::test
