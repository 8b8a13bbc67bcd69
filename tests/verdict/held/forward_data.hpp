// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Forward rows of the held-out grammar: layouts, groups, precision, races, quantisation, rows without keys, two
// defects.
#pragma once

#include <stdexcept>

#include "forward_scores.hpp"

namespace attune::test::held {

/// Elements are turned by `angle(position, pair)` in pairs (c, c + width / 2), or (2 c, 2 c + 1).
template <class Angle>
void turn(array& x, bool interleaved, Angle const& angle) {
  x.change([&](array const& o, int b, int h, int i, int c) {
    int const half = o.width / 2, n = interleaved ? c / 2 : c % half;
    bool const second = interleaved ? c % 2 == 1 : c >= half;
    int const other = interleaved ? c ^ 1 : second ? c - half : c + half;
    double const a = angle(i, n);
    return o(b, h, i, c) * std::cos(a) + (second ? 1 : -1) * o(b, h, i, other) * std::sin(a);
  });
}
inline double rope_angle(problem const& p, double position, int n) {
  return position * std::pow(10000.0, -2.0 * n / p.width);
}

inline std::vector<forward_row> data_rows() {
  using namespace words;
  using K = forward_kernel;
  auto const of_v = [](auto f) { return [f](K& k) { k.v.change(f); }; };
  auto const of_k = [](auto f) { return [f](K& k) { k.k.change(f); }; };
  auto const of_out = [](auto f) { return [f](K& k) { k.finally([f](array& out, array&) { out.change(f); }); }; };
  using O = array const&;
  return {
      {"v_lane_pairs", "CK: permuted store of V", "none", lanes,
       of_v([](O o, int b, int h, int j, int c) { return o(b, h, j, c ^ 1); })},
      {"k_lane_pairs", "ldmatrix: k in another order of lanes than q", "none", either(lanes, scale),
       of_k([](O o, int b, int h, int j, int c) { return o(b, h, j, c ^ 8); })},
      {"v_keys_permuted", "FP8 FlashAttention 3: V in the order of accumulators", "none", key_order,
       of_v([](O o, int b, int h, int j, int c) { return o(b, h, (j ^ 8) < o.length ? j ^ 8 : j, c); })},
      {"v_next_key", "common mistake: v pointer one row on", "causal", key_order,
       of_v([](O o, int b, int h, int j, int c) { return o(b, h, std::min(j + 1, o.length - 1), c); })},
      {"v_reversed", "common mistake: v read backwards", "none", key_order,
       of_v([](O o, int b, int h, int j, int c) { return o(b, h, o.length - 1 - j, c); })},
      {"v_tile_transposed", "missing .trans: 16 x 16 tiles of v turned", "none", either(lanes, layout),
       of_v([](O o, int b, int h, int j, int c) {
         int const x = down_to(j, 16) + c % 16, y = down_to(c, 16) + j % 16;
         return x < o.length && y < o.width ? o(b, h, x, y) : o(b, h, j, c);
       })},
      {"k_next_head", "common mistake: head stride of k", "none", other_head,
       of_k([](O o, int b, int h, int j, int c) { return o(b, (h + 2) % o.heads, j, c); })},
      {"v_next_head", "common mistake: head stride of v", "none", other_head,
       of_v([](O o, int b, int h, int j, int c) { return o(b, (h + 2) % o.heads, j, c); })},
      {"v_first_batch", "common mistake: batch stride of v is 0", "none", batch,
       of_v([](O o, int, int h, int j, int c) { return o(0, h, j, c); })},
      {"k_batches_swapped", "beam search: cache not reordered", "causal", batch,
       of_k([](O o, int b, int h, int j, int c) { return o(1 - b, h, j, c); })},
      {"gqa_modulo", "common mistake: h % Hk", "none", groups,
       [](K& k) {
         auto const f = [n = k.p->key_heads](int h) { return h % n; };
         k.k = k.p->expanded(k.p->k, f), k.v = k.p->expanded(k.p->v, f);
       }},
      {"gqa_modulo_v", "levanter 449: groups of v broadcast otherwise", "causal", groups,
       [](K& k) { k.v = k.p->expanded(k.p->v, [n = k.p->key_heads](int h) { return h % n; }); }},
      {"gqa_first_head", "MQA kernel called with GQA", "none", groups,
       [](K& k) {
         k.k = k.p->expanded(k.p->k, [](int) { return 0; }), k.v = k.p->expanded(k.p->v, [](int) { return 0; });
       }},
      {"out_layout", "common mistake: (B, L, H, D) returned as (B, H, L, D)", "none", layout,
       of_out([](O o, int b, int h, int i, int c) {
         int const n = h * o.length + i;
         return o(b, n % o.heads, n / o.heads, c);
       })},
      {"out_heads_swapped", "tensor parallel: heads of two ranks exchanged", "causal", other_head,
       of_out([](O o, int b, int h, int i, int c) { return o(b, h ^ 1, i, c); })},
      {"out_rows_swapped", "warps 0 and 1 store into each other's rows", "none", other_row,
       of_out([](O o, int b, int h, int i, int c) { return o(b, h, (i ^ 16) < o.length ? i ^ 16 : i, c); })},
      {"out_features_turned", "swizzle of the epilogue", "none", lanes,
       of_out([](O o, int b, int h, int i, int c) { return o(b, h, i, (c + 8) % o.width); })},
      {"out_last_features", "Triton 621: head dim hard-coded", "none", either(unwritten, tail_width),
       of_out([](O o, int b, int h, int i, int c) { return c >= o.width - 8 ? 0 : o(b, h, i, c); })},
      {"out_features_twice", "Dv tail: last vector stored from the start", "none", either(lanes, tail_width),
       of_out([](O o, int b, int h, int i, int c) { return c >= o.width - 4 ? o(b, h, i, c - 4) : o(b, h, i, c); })},
      {"dot_half", "Triton 621: first half of the features only", "none", either(tail_width, scale),
       of_k([](O o, int b, int h, int j, int c) { return c >= o.width / 2 ? 0 : o(b, h, j, c); })},
      {"dot_tail", "common mistake: last step of the dot product lost", "causal", either(tail_width, scale),
       of_k([](O o, int b, int h, int j, int c) { return c >= o.width - 8 ? 0 : o(b, h, j, c); })},
      {"q_next_row", "common mistake: q pointer one row on", "none", other_row,
       [](K& k) {
         k.q.change([](O o, int b, int h, int i, int c) { return o(b, h, std::min(i + 1, o.length - 1), c); });
       }},
      {"kv_exchanged",
       "common mistake: arguments k and v exchanged",
       "none",
       swapped_kv,
       [](K& k) { std::swap(k.k, k.v); },
       {},
       {},
       shapes::equal},
      {"v_is_k",
       "MLA: v read from the latent of k",
       "none",
       swapped_kv,
       [](K& k) { k.v = k.k; },
       {},
       {},
       shapes::equal},
      {"rope_twice", "common mistake: q and k rotated by the model and the kernel", "causal", rotary,
       [](K& k) {
         problem const& p = *k.p;
         turn(k.q, false, [&](int i, int n) { return rope_angle(p, p.position(i), n); });
         turn(k.k, false, [&](int j, int n) { return rope_angle(p, j, n); });
       }},
      {"rope_other_layout", "vLLM: GPT-J and NeoX layouts exchanged", "none", rotary,
       [](K& k) {
         problem const& p = *k.p;
         for (array* x : {&k.q, &k.k}) {
           int const more = x == &k.q ? p.offset : 0;
           turn(*x, false, [&](int i, int n) { return -rope_angle(p, i + more, n); });
           turn(*x, true, [&](int i, int n) { return rope_angle(p, i + more, n); });
         }
       }},
      {"rope_q_one_late", "decoding: position of q off by one", "causal", rotary,
       [](K& k) { turn(k.q, false, [p = k.p](int, int n) { return rope_angle(*p, 1, n); }); }},
      {"rope_no_offset",
       "prefix cache: positions of q from 0",
       "causal",
       rotary,
       [](K& k) { turn(k.q, false, [p = k.p](int, int n) { return rope_angle(*p, -p->offset, n); }); },
       {},
       {},
       shapes::unequal},
      // Precision.
      {"out_bf16_each_tile", "accumulator stored in bf16 between tiles", "none", narrow,
       [](K& k) { k.round_out = [](double x) { return rounded_to(storage::bf16, x); }; }},
      {"out_fp16_each_key", "fp16 accumulation of P V (SageAttention)", "none", narrow,
       [](K& k) { k.round_out_each = [](double x) { return rounded_to(storage::fp16, x); }; }},
      {"weights_truncated", "common mistake: P cut to its upper 16 bits", "none", either(truncated, narrow_weights),
       [](K& k) { k.in_out = [](pair_at, double w) { return with_bits(w, 8, true); }; }},
      {"weights_fp8", "FP8 FlashAttention 3 on a bf16 path", "causal", narrow_weights,
       [](K& k) { k.in_out = [](pair_at, double w) { return with_bits(w, 4); }; }},
      {"sum_bf16", "row sum in bf16", "none", either(sums, narrow),
       [](K& k) { k.round_sum = [](double x) { return rounded_to(storage::bf16, x); }; }},
      {"exp_bad_range", "polynomial of exp2 without its last term", "none", exponential,
       [](K& k) { k.power = [](pair_at, double x) { return std::exp(x) * (x > -2 && x < -1 ? 1.02 : 1); }; }},
      {"exp_flush", "common mistake: weights below e^-6 flushed", "none", exponential,
       [](K& k) { k.power = [](pair_at, double x) { return x < -4 ? 0 : std::exp(x); }; }},
      {"exp_fraction", "FA4: exp2 by a polynomial of degree 2", "causal", exponential,
       [](K& k) {
         k.power = [](pair_at, double x) {
           double const y = x / std::log(2.0), n = std::floor(y), f = y - n;
           return std::ldexp(1 + f * (0.6565 + 0.3435 * f), int(n));
         };
       }},
      {"scores_bf16", "Q K written to memory as bf16", "none", narrow_scores,
       [](K& k) { k.score([](pair_at, double, double s) { return rounded_to(storage::bf16, s); }); }},
      {"dot_fp16",
       "llama.cpp: Q K accumulated in fp16",
       "none",
       narrow_scores,
       [](K& k) { k.logit = [p = k.p](pair_at a, double d) { return p->logit(a, rounded_to(storage::fp16, d)); }; },
       {},
       {},
       shapes::both,
       formats::half},
      {"dot_tf32",
       "PyTorch: tf32 allowed",
       "none",
       narrow_scores,
       [](K& k) {
         for (array* x : {&k.q, &k.k})
           for (double& y : x->x) y = with_bits(y, 11);
       },
       {},
       {},
       shapes::both,
       formats::wide},
      {"q_scaled_in_bf16", "q times the scale rounded to bf16", "none", narrow_scores,
       [](K& k) {
         for (double& y : k.q.x) y = rounded_to(storage::bf16, y * k.p->scale) / k.p->scale;
       }},
      {"out_truncated",
       "common mistake: upper 16 bits of the result",
       "none",
       truncated,
       [](K& k) { k.store = [](double x) { return with_bits(x, 8, true); }; },
       {},
       {},
       shapes::both,
       formats::sixteen},
      {"v_fp8", "cache in fp8 without the caller's knowledge", "none", either(narrow, "v\\b|value|cache"),
       [](K& k) {
         for (double& y : k.v.x) y = with_bits(y, 4);
       }},
      {"alpha_bf16", "correction factor in bf16", "none", either(rescale, narrow),
       [](K& k) { k.shrink_out = [](row_at, int, double a) { return rounded_to(storage::bf16, a); }; }},
      // Races.
      {"tile_twice",
       "race: a tile of one head counted twice",
       "none",
       race,
       [](K& k) { k.times_sum = k.times_out = [](row_at r, int t) { return r.h == 1 && t == 1 ? 2.0 : 1.0; }; },
       {},
       [](K const&, int j) { return j >= 32 && j < 64; }},
      {"tile_lost",
       "race: a tile lost in one block of queries",
       "none",
       race,
       [](K& k) { k.times_sum = k.times_out = [](row_at r, int t) { return r.i / 32 == 1 && t == 2 ? 0.0 : 1.0; }; },
       {},
       [](K const&, int j) { return j >= 64 && j < 96; }},
      {"k_tile_stale",
       "llama.cpp 13438: tile of k overwritten late",
       "none",
       either(stale, key_order),
       of_k([](O o, int b, int h, int j, int c) { return j / 32 == 2 ? o(b, h, j - 32, c) : o(b, h, j, c); }),
       {},
       [](K const&, int j) { return j / 32 == 2; }},
      {"v_tile_stale_half",
       "missing barrier: half of a tile of v is old",
       "none",
       either(stale, key_order),
       of_v([](O o, int b, int h, int j, int c) {
         return b == 1 && j / 32 == 3 && j % 32 >= 16 ? o(b, h, j - 32, c) : o(b, h, j, c);
       }),
       {},
       [](K const&, int j) { return j >= 112 && j < 128; }},
      {"row_garbage", "race: one row holds another row's result", "none", either(other_row, "quer(y|ies) 37|row 37"),
       of_out([](O o, int b, int h, int i, int c) {
         return b == 0 && h == 1 && i == 37 ? o(b, h, 5, c) : o(b, h, i, c);
       })},
      // Quantised caches.
      {"scales_exchanged", "SageAttention: k_scale and v_scale exchanged", "none", quantised,
       [](K& k) {
         for (double& x : k.k.x) x *= 1.25;
         for (double& x : k.v.x) x *= 0.8;
       },
       "(25|20|-20|\\+25)"},
      {"v_scale_missing", "SGLang 20705: v_scale ignored", "causal", factor,
       [](K& k) {
         for (double& x : k.v.x) x *= 0.5;
       },
       "-50"},
      {"k_scale_next_head", "sgl-kernel-xpu 252: scales of another head", "none", either(quantised, scale),
       of_k([](O o, int b, int h, int j, int c) { return o(b, h, j, c) * (h % 2 ? 1.3 : 1 / 1.3); })},
      {"v_scale_by_channel", "SageAttention: scales of another channel", "none", either(quantised, tail_width),
       of_v([](O o, int b, int h, int j, int c) { return o(b, h, j, c) * (c % 4 == 1 ? 1.5 : 1); })},
      {"k_block_scale_stale",
       "scale of the previous block of keys",
       "none",
       either(quantised, key_order),
       of_k([](O o, int b, int h, int j, int c) { return o(b, h, j, c) * (j / 32 == 2 ? 1.4 : 1); }),
       {},
       [](K const&, int j) { return j / 32 == 2; }},
      // Rows that see no key, and numbers that are none.
      {"empty_rows_mean", "common mistake: softmax of equal -1e9", "tall", either(empty, "mean|average"),
       [](K& k) {
         k.finally([&k](array& out, array&) {
           problem const& p = *k.p;
           out.change([&](array const& o, int b, int h, int i, int c) {
             if (p.position(i) >= 0) return o(b, h, i, c);
             double sum = 0;
             for (int j = 0; j < p.keys; ++j) sum += k.v(b, h, j, c);
             return sum / p.keys;
           });
         });
       }},
      {"empty_rows_nan", "FlashAttention 1778, FlashInfer 4051: -inf - -inf", "tall", either(empty, not_numbers),
       [](K& k) {
         k.finally([p = k.p](array& out, array&) {
           out.change(
               [=](array const& o, int b, int h, int i, int c) { return p->position(i) < 0 ? NAN : o(b, h, i, c); });
         });
       }},
      {"empty_rows_stale", "rows without keys are not stored", "tall", either(empty, either(unwritten, other_row)),
       [](K& k) {
         k.finally([p = k.p](array& out, array&) {
           out.change([=](array const& o, int b, int h, int i, int c) {
             return p->position(i) < 0 ? o(b, h, i + 32, c) : o(b, h, i, c);
           });
         });
       }},
      {"head_zero", "one head is not stored", "none", zeros,
       of_out([](O o, int b, int h, int i, int c) { return h == 2 ? 0 : o(b, h, i, c); })},
      {"tail_nan", "uninitialised shared memory: NaN in the last rows", "none", not_numbers,
       of_out([](O o, int b, int h, int i, int c) { return b == 1 && i >= o.length - 5 ? NAN : o(b, h, i, c); })},
      {"all_zero", "common mistake: launch failed silently", "none", zeros,
       of_out([](O, int, int, int, int) { return 0.0; })},
  };
}

/// All forward rows, and two at once.
inline std::vector<forward_row> forward_rows() {
  std::vector<forward_row> all = mask_rows();
  for (auto const& part : {statistics_rows(), score_rows(), data_rows()})
    all.insert(all.end(), part.begin(), part.end());
  auto const of = [&](std::string const& id) {
    for (forward_row const& r : all)
      if (r.id == id) return r;
    throw std::logic_error(id);
  };
  for (auto const& [a, b] : {std::pair{"causal_one_ahead", "scale_2_percent"},
                             {"page_last_key", "v_lane_pairs"},
                             {"tail_keys_lost", "scale_twice"},
                             {"out_heads_swapped", "causal_self_hidden"},
                             {"gqa_modulo_v", "lse_base2"},
                             {"cap_ignored", "scale_one_head"},
                             {"sink_ignored", "causal_one_head"},
                             {"tile_twice", "head_zero"},
                             {"merge_equal", "weights_fp8"},
                             {"v_next_head", "not_normalized_last_rows"},
                             {"bias_scaled", "last_key_lost"},
                             {"window_one_more", "v_first_batch"}}) {
    forward_row x = of(a), y = of(b);
    x.id += std::string("+") + b, x.source += "; " + y.source, x.names += "|" + y.names, x.pair = true, x.keys = {};
    if (!y.measures.empty()) x.measures += (x.measures.empty() ? "" : "|") + y.measures;
    x.apply = [f = x.apply, g = y.apply](forward_kernel& k) { f(k), g(k); };
    all.push_back(x);
  }
  return all;
}

}  // namespace attune::test::held
