// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Backward rows of the held-out grammar.
#pragma once

#include <memory>
#include <stdexcept>

#include "backward.hpp"
#include "words.hpp"

namespace attune::test::held {

using backward_row = row<backward_kernel>;

inline std::vector<backward_row> single_backward_rows() {
  using namespace words;
  using K = backward_kernel;
  using A = pair_at;
  using P = problem const&;
  using O = array const&;
  auto const see = [](auto f) {
    return [f](K& k) {
      problem const* p = k.p;
      k.see([p, f](pair_at a, bool old) { return f(*p, a, old); });
    };
  };
  auto const finally = [](auto f) { return [f](K& k) { k.finally([f, p = k.p](backward_result& g) { f(*p, g); }); }; };
  // An lse or delta of the forward pass, changed.
  auto const rows_of = [](K& k, auto f) {
    forward_kernel const right(*k.p);
    f(std::make_shared<forward_result>(run<double>(right)));
  };
  auto const deltas_as = [=](auto of) {  // of(deltas, row)
    return [=](K& k) {
      rows_of(k, [&](auto const& there) {
        auto d = std::make_shared<array>(k.p->batch, k.p->heads, k.p->queries, 1);
        for (int c = 0; c < k.p->value_width; ++c)
          d->change([&](O o, int b, int h, int i, int) {
            return o(b, h, i, 0) + there->out(b, h, i, c) * k.p->dout(b, h, i, c);
          });
        k.delta = [d, of](row_at r, double) { return of(*d, r); };
      });
    };
  };
  auto const lses_as = [=](auto of) {  // of(lses, row)
    return [=](K& k) {
      rows_of(k, [&](auto const& there) { k.lse = [there, of](row_at r, double) { return of(there->lse, r); }; });
    };
  };
  auto const in_bf16 = [](double x) { return rounded_to(storage::bf16, x); };
  auto const delta_head = [](O d, row_at r) { return d(r.b, (r.h + 1) % d.heads, r.i, 0); };
  text const of_scale = "scale|sqrt|factor|were|log2|ln ?2";
  return {
      {"delta_missing", "common mistake: dS = P dP", "causal", delta,
       [](K& k) { k.delta = [](row_at, double) { return 0.0; }; }},
      {"delta_doubled", "common mistake: delta added twice", "none", delta,
       [](K& k) { k.delta = [](row_at, double x) { return 2 * x; }; }},
      {"delta_sign", "common mistake: dP + delta", "none", delta,
       [](K& k) { k.delta = [](row_at, double x) { return -x; }; }},
      {"delta_neighbour", "FlashAttention 2481: dpsum of other rows", "none", either(delta, other_row),
       deltas_as([](O d, row_at r) { return d(r.b, r.h, r.i ^ 1, 0); })},
      {"delta_next_head", "common mistake: head stride of delta", "none", either(delta, other_head),
       deltas_as(delta_head)},
      {"delta_tail_missing", "FlashAttention 2498: tail of dpsum not written", "causal", delta,
       [](K& k) { k.delta = [n = down_to(k.p->queries - 1, 32)](row_at r, double x) { return r.i >= n ? 0 : x; }; }},
      {"delta_stale", "FlashAttention 2481: previous tile of dpsum", "none", either(delta, other_row),
       deltas_as([](O d, row_at r) { return d(r.b, r.h, r.i >= 32 ? r.i - 32 : r.i, 0); })},
      {"delta_bf16", "delta from an output rounded and stored in bf16", "none", either(delta, narrow),
       [=](K& k) { k.delta = [=](row_at, double x) { return in_bf16(x); }; }},
      {"dp_halved", "common mistake: factor of dP", "causal", either(dp, factor),
       [](K& k) { k.dp = [](A, double x) { return x / 2; }; }},
      {"dp_next_head", "native-sparse-attention 27: v of another head", "none", either(other_head, dp),
       [](K& k) { k.v.change([](O o, int b, int h, int j, int c) { return o(b, (h + 2) % o.heads, j, c); }); }},
      {"dp_width_tail", "native-sparse-attention 27: v_head_dim masked", "none", either(dp, tail_width),
       [](K& k) { k.v.change([](O o, int b, int h, int j, int c) { return c >= o.width - 4 ? 0 : o(b, h, j, c); }); }},
      {"scale_missing_dq", "common mistake: dq not scaled", "causal", of_scale,
       [](K& k) { k.scale_q = 1 / k.p->scale; }},
      {"scale_missing_dk", "common mistake: dk not scaled", "none", of_scale, [](K& k) { k.scale_k = 1 / k.p->scale; }},
      {"scale_missing_both", "Triton tutorial: scale in the epilogue lost", "none", of_scale,
       [](K& k) { k.scale_q = k.scale_k = 1 / k.p->scale; }},
      {"scale_twice_dq", "common mistake: dq scaled twice", "none", of_scale, [](K& k) { k.scale_q = k.p->scale; }},
      {"scale_twice_dk", "q scaled in place before dk", "causal", of_scale, [](K& k) { k.scale_k = k.p->scale; }},
      {"log2e_left_dk", "Triton tutorial: dk times ln 2", "none", either(of_scale, base2),
       [](K& k) { k.scale_k = ln2; }, "-3[01]|0\\.69"},
      {"log2e_left_both", "common mistake: log2(e) left in dS", "causal", either(of_scale, base2),
       [](K& k) { k.scale_q = k.scale_k = 1 / ln2; }, "\\+ ?44|1\\.44"},
      {"group_first_head_dk", "levanter 449: dk of one head of a group", "none", group_sum,
       [](K& k) { k.of_head_k = [g = k.p->group()](int h, double x) { return h % g ? 0 : x; }; }},
      {"group_first_head_dv", "AiDotNet 633: groups ignored in dv", "causal", group_sum,
       [](K& k) { k.of_head_v = [g = k.p->group()](int h, double x) { return h % g ? 0 : x; }; }},
      {"group_last_head_both", "store in place of an atomic addition", "none", group_sum,
       [](K& k) {
         k.of_head_k = k.of_head_v = [g = k.p->group()](int h, double x) { return h % g != g - 1 ? 0 : x; };
       }},
      {"group_mean", "common mistake: mean over the group", "none", either(group_sum, factor),
       [](K& k) { k.of_head_k = k.of_head_v = [g = k.p->group()](int, double x) { return x / g; }; }, "-50"},
      {"group_mean_dk", "common mistake: mean over the group for dk", "causal", either(group_sum, factor),
       [](K& k) { k.of_head_k = [g = k.p->group()](int, double x) { return x / g; }; }, "-50"},
      {"group_modulo", "native-sparse-attention 27: gqa_interleave", "none", group_sum,
       [](K& k) { k.group_of = [n = k.p->key_heads](int h) { return h % n; }; }},
      {"mask_one_ahead", "common mistake: causal in the backward pass only", "causal", edge,
       see([](P p, A a, bool) { return a.j <= p.position(a.i) + 1; })},
      {"mask_self_hidden", "common mistake: j < i in the backward pass", "causal", either(edge, "own key|itself|self"),
       see([](P p, A a, bool) { return a.j < p.position(a.i); })},
      {"mask_ignored", "common mistake: no mask in the backward pass", "causal", future,
       see([](P, A, bool) { return true; })},
      {"mask_whole_tiles", "CK 1352: diagonal tiles not masked", "causal", either(tile_edge, future),
       see([](P p, A a, bool) { return a.j <= (p.position(a.i) | 15); })},
      {"mask_top_left",
       "FlashAttention: alignment of the backward pass",
       "causal",
       align,
       see([](P, A a, bool) { return a.j <= a.i; }),
       {},
       {},
       shapes::unequal},
      {"mask_window_wide", "common mistake: window by one", "window", window,
       see([](P p, A a, bool) { return a.j <= p.position(a.i) && a.j >= p.position(a.i) - p.window; })},
      {"mask_window_ignored", "ring attention: window in the forward pass only", "window",
       either(window, "mask.*(ignored|missing)"), see([](P p, A a, bool) { return a.j <= p.position(a.i); })},
      {"mask_documents_ignored", "fla 837: cu_seqlens lost", "docs", either(documents, future),
       see([](P p, A a, bool) { return a.j <= p.position(a.i); })},
      {"mask_padding_ignored",
       "cuDNN frontend 676: padded keys",
       "pad",
       either(padding, future),
       see([](P, A, bool) { return true; }),
       {},
       [](K const& k, int j) { return j >= k.p->lengths[0]; }},
      {"lse_base2", "common mistake: base-2 lse read as natural", "none", either(base2, lse_backward),
       [](K& k) { k.lse = [](row_at, double x) { return x / ln2; }; }},
      {"lse_natural_as_base2", "common mistake: natural lse read as base 2", "causal", either(base2, lse_backward),
       [](K& k) { k.lse = [](row_at, double x) { return x * ln2; }; }},
      {"lse_neighbour", "common mistake: lse of another row", "none", either(lse_backward, other_row),
       lses_as([](O l, row_at r) { return l(r.b, r.h, r.i ^ 1, 0); })},
      {"lse_next_head", "varlen: stride of lse", "none", either(lse_backward, other_head),
       lses_as([](O l, row_at r) { return l(r.b, (r.h + 1) % l.heads, r.i, 0); })},
      {"lse_without_sink", "FlashAttention 2102: sink in the forward pass only", "sink/causal",
       either(sink, lse_backward),
       [](K& k) {
         k.lse = [p = k.p](row_at r, double x) {
           return x + std::log1p(-std::exp(std::min(-1e-9, p->sink[std::size_t(r.h)] - x)));
         };
       }},
      {"lse_bf16", "lse stored in bf16", "none", either(lse_backward, narrow),
       [=](K& k) { k.lse = [=](row_at, double x) { return in_bf16(x); }; }},
      {"lse_of_one_block", "ring attention: lse of a block, not merged", "none", lse_backward,
       [](K& k) { k.lse = [](row_at r, double x) { return r.i % 32 >= 16 ? x - 0.4 : x; }; }},
      {"cap_derivative_missing", "FlashAttention 1033: dtanh", "cap/causal", cap,
       [](K& k) { k.slope = [](A, double) { return 1.0; }; }},
      {"cap_derivative_linear", "common mistake: 1 - t", "cap/causal", cap,
       [](K& k) { k.slope = [p = k.p](A a, double d) { return 1 - std::fabs(p->logit(a, d)) / p->cap; }; }},
      {"cap_derivative_twice", "common mistake: derivative applied twice", "cap/none", cap,
       [](K& k) {
         k.slope = [p = k.p](A a, double d) {
           double const x = p->slope_of_logit(a, d);
           return x * x;
         };
       }},
      {"cap_not_recomputed", "common mistake: cap in the forward pass only", "cap/causal", cap,
       [](K& k) {
         k.logit = [p = k.p](A, double d) { return d * p->scale; }, k.slope = [](A, double) { return 1.0; };
       }},
      {"tail_dq_zero", "last block of queries not stored", "causal", unwritten, finally([](P, backward_result& g) {
         g.dq.change(
             [](O o, int b, int h, int i, int c) { return i >= down_to(o.length - 1, 32) ? 0 : o(b, h, i, c); });
       })},
      {"tail_dk_zero", "last block of keys not stored", "none", unwritten, finally([](P, backward_result& g) {
         g.dk.change(
             [](O o, int b, int h, int i, int c) { return i >= down_to(o.length - 1, 32) ? 0 : o(b, h, i, c); });
       })},
      {"tail_dv_zero", "last rows of dv not stored", "none", unwritten, finally([](P, backward_result& g) {
         g.dv.change([](O o, int b, int h, int i, int c) { return i >= down_to(o.length - 1, 8) ? 0 : o(b, h, i, c); });
       })},
      {"tail_dv_features", "head dim tail of dv", "none", either(unwritten, tail_width),
       finally([](P, backward_result& g) {
         g.dv.change([](O o, int b, int h, int i, int c) { return c >= o.width - 4 ? 0 : o(b, h, i, c); });
       })},
      {"tail_dq_features", "head dim tail of dq", "causal", either(unwritten, tail_width),
       finally([](P, backward_result& g) {
         g.dq.change([](O o, int b, int h, int i, int c) { return c >= o.width - 8 ? 0 : o(b, h, i, c); });
       })},
      {"dk_misses_last_queries", "common mistake: loop over full tiles of queries", "none",
       "quer(y|ies)|tile|tail|lost|missing",
       [](K& k) { k.in_dk = [n = down_to(k.p->queries - 1, 32)](A a, double x) { return a.i >= n ? 0 : x; }; }},
      {"dq_misses_last_keys",
       "common mistake: loop over full tiles of keys",
       "none",
       either(lost_keys, "tail|tile"),
       [](K& k) { k.in_dq = [n = down_to(k.p->keys - 1, 32)](A a, double x) { return a.j >= n ? 0 : x; }; },
       {},
       [](K const& k, int j) { return j >= down_to(k.p->keys - 1, 32); }},
      {"dq_tile_twice",
       "FastVideo 735: race when dq is reduced",
       "none",
       race,
       [](K& k) { k.in_dq = [](A a, double x) { return a.h == 1 && a.j / 32 == 1 ? 2 * x : x; }; },
       {},
       [](K const&, int j) { return j / 32 == 1; }},
      {"dq_tile_lost",
       "FlashAttention 359: race of dq",
       "none",
       race,
       [](K& k) { k.in_dq = [](A a, double x) { return a.i / 32 == 1 && a.j / 32 == 0 ? 0 : x; }; },
       {},
       [](K const&, int j) { return j < 32; }},
      {"dk_tile_lost", "cuDNN frontend 396: dK overwritten", "causal", either(race, "quer"),
       [](K& k) { k.in_dk = [](A a, double x) { return a.h == 2 && a.i / 32 == 1 ? 0 : x; }; }},
      {"dv_doubled", "common mistake: dv accumulated twice", "none", either(doubled, factor),
       [](K& k) { k.in_dv = [](A, double x) { return 2 * x; }; }, "\\+ ?100"},
      {"dq_not_cleared", "common mistake: accumulator of dq not zeroed", "none",
       "stale|not (cleared|zeroed)|constant|added|initial|another|quer|row", finally([](P, backward_result& g) {
         g.dq.change([](O o, int b, int h, int i, int c) {
           return o(b, h, i, c) + (i < 16 ? o(b, (h + 1) % o.heads, i, c) : 0);
         });
       })},
      {"dq_bf16_atomics", "CK 1397: atomic additions in 16 bits", "none", atomics, [=](K& k) { k.round_q = in_bf16; }},
      {"dk_bf16_sums", "dk accumulated in bf16", "causal", atomics, [=](K& k) { k.round_k = in_bf16; }},
      {"dv_fp16_sums",
       "dv accumulated in fp16",
       "none",
       atomics,
       [](K& k) { k.round_v = [](double x) { return rounded_to(storage::fp16, x); }; },
       {},
       {},
       shapes::both,
       formats::half},
      {"p_truncated", "P cut to its upper 16 bits in dv", "none", either(truncated, narrow_weights),
       [](K& k) { k.in_dv = [](A, double x) { return with_bits(x, 8, true); }; }},
      {"ds_fp8", "dS in fp8", "none", either(narrow, "ds\\b"),
       [](K& k) { k.ds = [](A, double x) { return with_bits(x, 4); }; }},
      {"dp_bf16",
       "dP written to memory as bf16",
       "causal",
       either(narrow, dp),
       [=](K& k) { k.dp = [=](A, double x) { return in_bf16(x); }; },
       {},
       {},
       shapes::both,
       formats::wide},
      {"products_tf32",
       "PyTorch: tf32 allowed",
       "none",
       narrow,
       [](K& k) {
         for (array* x : {&k.q, &k.k, &k.v, &k.dout})
           for (double& y : x->x) y = with_bits(y, 11);
       },
       {},
       {},
       shapes::both,
       formats::wide},
      {"dropout_left_dv", "CK 3486: rp_undrop in dv", "none", dropout,
       [](K& k) { k.in_dv = [](A, double x) { return x / 0.9; }; }, "\\+ ?11|0\\.1\\b"},
      {"dropout_left_dp", "CK 3486: rp_undrop in dP", "causal", either(dropout, dp),
       [](K& k) { k.dp = [](A, double x) { return x / 0.8; }; }, "\\+ ?25|0\\.2\\b"},
      {"dropout_left_all", "gradients of a step with dropout", "none", dropout,
       [](K& k) { k.scale_q = k.scale_k = 1 / 0.8, k.in_dv = [](A, double x) { return x / 0.8; }; },
       "\\+ ?25|0\\.2\\b"},
      {"dbias_one_batch", "CK 2570: dbias of the last batch element", "bias/none", either(dbias, batch),
       [](K& k) { k.in_dbias = [](A a, double x) { return a.b == 0 ? 0 : x; }; }},
      {"dbias_transposed",
       "xformers: dbias (k, q)",
       "bias/none",
       either(dbias, layout),
       finally([](P, backward_result& g) {
         g.dbias.change([](O o, int b, int h, int i, int j) { return o(b, h, j, i); });
       }),
       {},
       {},
       shapes::equal},
      {"dbias_scaled", "common mistake: dbias times the scale", "bias/none", either(dbias, of_scale),
       finally([](P p, backward_result& g) {
         for (double& x : g.dbias.x) x *= p.scale;
       })},
      {"dbias_head_zero", "common mistake: dbias broadcast over heads", "bias/none", either(dbias, other_head),
       finally(
           [](P, backward_result& g) { g.dbias.change([](O o, int b, int, int i, int j) { return o(b, 0, i, j); }); })},
      {"bias_not_recomputed", "common mistake: bias in the forward pass only", "bias/none", bias,
       [](K& k) { k.logit = [p = k.p](A, double d) { return d * p->scale; }; }},
      {"alibi_not_recomputed", "CK 1352: ALiBi in the backward pass", "alibi/causal", alibi,
       [](K& k) { k.logit = [p = k.p](A, double d) { return d * p->scale; }; }},
      {"alibi_next_head", "slopes of another head in the backward pass", "alibi/causal", alibi,
       [](K& k) {
         k.logit = [p = k.p](A a, double d) {
           return d * p->scale - double(p->slope[std::size_t((a.h + 1) % p->heads)]) * p->distance(a);
         };
       }},
      {"dk_dv_exchanged",
       "long-context-attention 121: packed gradients",
       "none",
       "dk and dv|dv and dk|exchang|swap|dk.*dv",
       finally([](P, backward_result& g) { std::swap(g.dk, g.dv); }),
       {},
       {},
       shapes::equal},
      {"dq_heads_swapped", "common mistake: heads of dq", "none", other_head, finally([](P, backward_result& g) {
         g.dq.change([](O o, int b, int h, int i, int c) { return o(b, h ^ 1, i, c); });
       })},
      {"dk_layout", "common mistake: dk as (B, L, H, D)", "none", layout, finally([](P, backward_result& g) {
         g.dk.change([](O o, int b, int h, int i, int c) {
           int const n = h * o.length + i;
           return o(b, n % o.heads, n / o.heads, c);
         });
       })},
      {"dk_lane_pairs", "swizzle of the epilogue of dk", "causal", lanes, finally([](P, backward_result& g) {
         g.dk.change([](O o, int b, int h, int i, int c) { return o(b, h, i, c ^ 1); });
       })},
      {"dv_rows_swapped", "accumulator rows of dv", "none", either(key_order, other_row),
       finally([](P, backward_result& g) {
         g.dv.change([](O o, int b, int h, int i, int c) { return o(b, h, (i ^ 8) < o.length ? i ^ 8 : i, c); });
       })},
      {"dk_batches_swapped", "common mistake: batch stride of dk", "none", batch, finally([](P, backward_result& g) {
         g.dk.change([](O o, int b, int h, int i, int c) { return o(1 - b, h, i, c); });
       })},
      {"dq_k_next_head", "dq from k of another head", "none", other_head,
       [](K& k) { k.k_for_dq.change([](O o, int b, int h, int j, int c) { return o(b, (h + 2) % o.heads, j, c); }); }},
      {"dk_q_next_row", "dk from rows of q one on", "none", either(other_row, "q\\b.*(shift|next)"),
       [](K& k) {
         k.q_for_dk.change([](O o, int b, int h, int i, int c) { return o(b, h, std::min(i + 1, o.length - 1), c); });
       }},
      {"dv_dout_neighbour", "dv from rows of dout exchanged", "causal", either(other_row, "dout"),
       [](K& k) { k.dout_for_dv.change([](O o, int b, int h, int i, int c) { return o(b, h, i ^ 1, c); }); }},
      {"dout_strided", "FlashAttention: dout not contiguous", "none", either(layout, "dout"),
       [](K& k) {
         k.dout.change([](O o, int b, int h, int i, int c) {
           int const n = h * o.length + i;
           return o(b, n % o.heads, n / o.heads, c);
         });
         k.dout_for_dv = k.dout;
       }},
      {"dq_zero", "cuDNN: dq not computed", "none", zeros, finally([](P, backward_result& g) {
         for (double& x : g.dq.x) x = 0;
       })},
      {"dv_nan_tail", "flash-sparse-attention 121: NaN only in dv", "none", not_numbers,
       finally([](P, backward_result& g) {
         g.dv.change([](O o, int b, int h, int i, int c) { return b == 1 && i >= o.length - 3 ? NAN : o(b, h, i, c); });
       })},
      {"empty_rows_nan", "cuDNN frontend 676: NaN of rows without keys", "tall", either(empty, not_numbers),
       finally([](P p, backward_result& g) {
         g.dq.change([&](O o, int b, int h, int i, int c) { return p.position(i) < 0 ? NAN : o(b, h, i, c); });
       })},
      {"dq_not_rotated_back", "RoPE: dq with respect to rotated q", "causal", "rope|rotar|rotat|turn|angle",
       finally([](P p, backward_result& g) {
         g.dq.change([&](O o, int b, int h, int i, int c) {
           int const half = o.width / 2, n = c % half;
           double const a = p.position(i) * std::pow(10000.0, -2.0 * n / o.width);
           return o(b, h, i, c) * std::cos(a) + (c < half ? -o(b, h, i, c + half) : o(b, h, i, c - half)) * std::sin(a);
         });
       })},
  };
}

/// All backward rows, and two at once.
inline std::vector<backward_row> backward_rows() {
  std::vector<backward_row> all = single_backward_rows();
  auto const of = [&](std::string const& id) {
    for (backward_row const& r : all)
      if (r.id == id) return r;
    throw std::logic_error(id);
  };
  for (auto const& [a, b] : {std::pair{"scale_missing_dq", "group_first_head_dk"},
                             {"mask_one_ahead", "tail_dv_features"},
                             {"group_mean_dk", "dropout_left_dv"},
                             {"dq_zero", "dk_lane_pairs"},
                             {"tail_dq_zero", "group_last_head_both"},
                             {"delta_missing", "dv_rows_swapped"},
                             {"cap_derivative_missing", "scale_twice_dk"},
                             {"dq_tile_twice", "tail_dk_zero"},
                             {"log2e_left_dk", "dq_heads_swapped"},
                             {"delta_bf16", "dv_doubled"}}) {
    backward_row x = of(a), y = of(b);
    x.id += std::string("+") + b, x.source += "; " + y.source, x.names += "|" + y.names, x.pair = true,
                                                                                         x.keys = nullptr;
    if (!y.measures.empty()) x.measures += (x.measures.empty() ? "" : "|") + y.measures;
    x.apply = [f = x.apply, g = y.apply](backward_kernel& k) { f(k), g(k); };
    all.push_back(x);
  }
  return all;
}

}  // namespace attune::test::held
