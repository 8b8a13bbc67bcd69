// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Forward rows of the held-out grammar: statistics of the softmax, splits, scales, caps, sinks, ALiBi, biases.
#pragma once

#include "forward_masks.hpp"

namespace attune::test::held {

inline std::vector<forward_row> statistics_rows() {
  using namespace words;
  using K = forward_kernel;
  auto const split = [](K& k) { k.splits = {down_to(k.p->keys / 3, 16), down_to(2 * k.p->keys / 3, 16)}; };
  auto const lse = [](auto f) { return [f](K& k) { k.finally([f, p = k.p](array&, array& l) { f(*p, l); }); }; };
  return {
      {"no_rescale_out", "common mistake: accumulator not corrected", "none", rescale,
       [](K& k) { k.shrink_out = [](row_at, int, double) { return 1.0; }; }},
      {"no_rescale_sum", "common mistake: sum not corrected", "none", either(rescale, sums),
       [](K& k) { k.shrink_sum = [](row_at, int, double) { return 1.0; }; }},
      {"no_rescale_both", "FlashAttention: max updated, nothing corrected", "causal", rescale,
       [](K& k) { k.shrink_out = k.shrink_sum = [](row_at, int, double) { return 1.0; }; }},
      {"rescale_twice", "common mistake: correction in two warps", "none", rescale,
       [](K& k) { k.shrink_out = [](row_at, int, double a) { return a * a; }; }},
      {"rescale_not_in_tail", "tail loop without correction", "none", rescale,
       [](K& k) { k.shrink_out = [n = k.tiles() - 1](row_at, int t, double a) { return t == n ? 1 : a; }; }},
      {"rescale_half_rows", "FA4: correction warp group skips rows", "none", rescale,
       [](K& k) { k.shrink_out = [](row_at r, int, double a) { return r.i % 32 >= 16 ? 1 : a; }; }},
      {"rescale_second_tile", "pipelining: correction of tile 1 lost", "causal", rescale,
       [](K& k) { k.shrink_out = k.shrink_sum = [](row_at, int t, double a) { return t == 1 ? 1 : a; }; }},
      {"rescale_threshold", "FA4: correction skipped below a threshold, not undone", "none", rescale,
       [](K& k) { k.shrink_out = [](row_at, int, double a) { return a > 0.5 ? 1 : a; }; }},
      {"rescale_base2", "alpha by exp2 of natural scores", "none", either(rescale, base2),
       [](K& k) { k.shrink_out = k.shrink_sum = [](row_at, int, double a) { return std::pow(a, ln2); }; }},
      {"sum_misses_last_tile", "common mistake: reduction before the last tile", "none", sums,
       [](K& k) { k.times_sum = [n = k.tiles() - 1](row_at, int t) { return t == n ? 0.0 : 1.0; }; }},
      {"sum_counts_padding", "Triton: zero-filled tail keys in the sum", "none", tail_sum,
       [](K& k) {
         int const extra = up_to(k.p->keys, 32) - k.p->keys, last = k.p->keys - 1;
         k.in_sum = [=, &k](pair_at a, double w) {
           if (a.j != last) return w;
           double dot = 0;
           for (int c = 0; c < k.p->width; ++c) dot += k.q(a.b, a.h, a.i, c) * k.k(a.b, a.h, a.j, c);
           return w + extra * w * std::exp(-k.p->logit(a, dot));
         };
       }},
      {"sum_half_lanes", "warp reduction over half of the lanes", "none", sums,
       [](K& k) { k.in_sum = [](pair_at a, double w) { return a.i % 8 == 5 && a.j % 4 >= 2 ? 0 : w; }; }},
      {"sum_epsilon", "common mistake: eps added to the sum", "causal", epsilon,
       [](K& k) { k.divisor = [](row_at, double sum) { return sum + 0.05; }; }},
      {"not_normalized_last_rows", "epilogue skipped for the last block of queries", "none", sums,
       [](K& k) {
         k.divisor = [n = down_to(k.p->queries - 1, 32)](row_at r, double sum) { return r.i >= n ? 1 : sum; };
       }},
      {"normalized_by_neighbour", "warp reads the sum of another row", "none", either(sums, other_row),
       [](K& k) {
         k.finally([](array& out, array& l) {
           out.change([&](array const& o, int b, int h, int i, int c) {
             return o(b, h, i, c) * std::exp(l(b, h, i, 0) - l(b, h, i ^ 1, 0));
           });
         });
       }},
      {"reciprocal_coarse", "fast reciprocal without a Newton step", "none", either(sums, narrow),
       [](K& k) { k.divisor = [](row_at, double sum) { return 1 / with_bits(1 / sum, 9); }; }},
      {"merge_equal", "common mistake: splits averaged", "none", merge,
       [=](K& k) { split(k), k.merge = [](row_at, int, double) { return 1.0; }; }},
      {"merge_base2", "vLLM 52796: base-2 lse merged with e", "none", either(merge, base2),
       [=](K& k) { split(k), k.merge = [](row_at, int, double x) { return std::exp(x / ln2); }; }},
      {"merge_exp2_of_natural", "SGLang 35045: natural lse merged with 2", "causal", either(merge, base2),
       [=](K& k) { split(k), k.merge = [](row_at, int, double x) { return std::exp2(x); }; }},
      {"merge_last_lost",
       "FlashDecoding: last split not merged",
       "none",
       either(merge, lost_keys),
       [=](K& k) { split(k), k.merge = [](row_at, int n, double x) { return n == 2 ? 0 : std::exp(x); }; },
       {},
       [](K const& k, int j) { return j >= down_to(2 * k.p->keys / 3, 16); }},
      {"merge_first_twice",
       "ring attention: own block merged twice",
       "none",
       either(merge, doubled),
       [=](K& k) { split(k), k.merge = [](row_at, int n, double x) { return (n == 0 ? 2 : 1) * std::exp(x); }; },
       {},
       [](K const& k, int j) { return j < down_to(k.p->keys / 3, 16); }},
      {"merge_some_heads", "FlashInfer: lse stride by heads in the merge", "none", merge,
       [=](K& k) { split(k), k.merge = [](row_at r, int, double x) { return r.h % 2 == 1 ? 1 : std::exp(x); }; }},
      {"merge_half_exponent", "common mistake: merged with the wrong scale", "none", merge,
       [=](K& k) { split(k), k.merge = [](row_at, int, double x) { return std::exp(x / 2); }; }},
      {"lse_base2", "FlashInfer 2113: lse in base 2", "causal", base2, lse([](problem const&, array& l) {
         for (double& x : l.x) x /= ln2;
       }),
       "1\\.44"},
      {"lse_no_maximum", "common mistake: log of the sum alone", "none", lse_alone,
       [](K& k) { k.lse = [](row_at, double, double sum) { return std::log(sum); }; }},
      {"lse_no_log", "common mistake: maximum plus sum", "none", lse_alone,
       [](K& k) { k.lse = [](row_at, double top, double sum) { return top + sum; }; }},
      {"lse_maximum_only", "common mistake: maximum stored for lse", "none", lse_alone,
       [](K& k) { k.lse = [](row_at, double top, double) { return top; }; }},
      {"lse_unscaled", "TransformerEngine: lse of scores without the scale of the maximum", "none", lse_alone,
       [](K& k) { k.lse = [s = k.p->scale](row_at, double top, double sum) { return top * s + std::log(sum); }; }},
      {"lse_next_head", "common mistake: stride of lse", "none", either(lse_alone, other_head),
       lse([](problem const& p, array& l) {
         l.change([&](array const& o, int b, int h, int i, int) { return o(b, (h + 1) % p.heads, i, 0); });
       })},
      {"lse_last_tile_stale", "lse of the previous block of queries", "none", either(lse_alone, other_row),
       lse([](problem const& p, array& l) {
         int const n = down_to(p.queries - 1, 32);
         l.change([&](array const& o, int b, int h, int i, int) { return o(b, h, i >= n ? i - 32 : i, 0); });
       })},
      {"lse_transposed", "varlen lse is (H, L), not (L, H)", "none", either(lse_alone, layout),
       lse([](problem const& p, array& l) {
         l.change([&](array const& o, int b, int h, int i, int) {
           int const n = h * p.queries + i;
           return o(b, n % p.heads, n / p.heads, 0);
         });
       })},
      {"lse_before_last_tile", "common mistake: lse written before the loop ends", "none", lse_alone,
       [](K& k) {
         k.lse = [](row_at r, double top, double sum) { return top + std::log(sum * (r.i % 2 ? 0.8 : 1)); };
       }},
  };
}

inline std::vector<forward_row> score_rows() {
  using namespace words;
  using K = forward_kernel;
  using P = problem const&;
  using A = pair_at;
  // f(problem, pair, dot, right logit)
  auto const score = [](auto f) {
    return [f](K& k) {
      problem const* p = k.p;
      k.score([p, f](pair_at a, double dot, double old) { return f(*p, a, dot, old); });
    };
  };
  auto const scaled = [=](auto by) {
    return score([by](P p, A a, double dot, double) { return p.logit(a, dot * by(p, a)); });
  };
  auto const slopes = [=](auto of) {  // another slope: of(problem, head)
    return score([of](P p, A a, double dot, double) { return dot * p.scale - of(p, a.h) * p.distance(a); });
  };
  auto const biased = [=](auto of) {  // another bias
    return score([of](P p, A a, double dot, double) { return dot * p.scale + of(p, a); });
  };
  return {
      {"scale_missing", "common mistake: scores not scaled", "causal", scale,
       scaled([](P p, A) { return 1 / p.scale; })},
      {"scale_twice", "vLLM: q scaled before the call", "none", scale, scaled([](P p, A) { return p.scale; })},
      {"scale_padded_width", "FlashAttention: 1/sqrt of the padded width", "none", scale,
       scaled([](P p, A) { return std::sqrt(double(p.width) / up_to(p.width + 1, 64)); }),
       "-(29|13|12|50|29\\.\\d|13\\.\\d|29\\.3|29\\.\\d+)"},
      {"scale_value_width",
       "MLA: 1/sqrt of the width of v",
       "causal",
       scale,
       scaled([](P p, A) { return std::sqrt(double(p.width) / p.value_width); }),
       "(9\\.5|15\\.)",
       {},
       shapes::unequal},
      {"scale_no_log2e", "common mistake: exp2 of natural scores", "none", either(scale, base2),
       scaled([](P, A) { return ln2; }), "-3[01]"},
      {"scale_log2e_twice", "common mistake: log2(e) applied twice", "none", either(scale, base2),
       scaled([](P, A) { return 1 / ln2; }), "\\+ ?44"},
      {"scale_one_head", "per-head scale read from a stale pointer", "none", scale,
       scaled([](P, A a) { return a.h == 2 ? 0.9 : 1.0; }), "-(10(\\.0)?|9\\.\\d*) ?%"},
      {"scale_2_percent", "common mistake: a constant typed in", "causal", scale, scaled([](P, A) { return 1.02; }),
       "\\+ ?(2|1\\.9\\d*|2\\.0\\d*) ?%"},
      {"scale_last_rows", "scale not applied in the tail block of queries", "none", scale,
       scaled([](P p, A a) { return a.i >= down_to(p.queries - 1, 32) ? 1 / p.scale : 1; })},
      {"scale_smaller_second_batch", "descale of another batch element", "none", either(scale, quantised),
       scaled([](P, A a) { return a.b == 1 ? 0.8 : 1.0; }), "-(20|19)"},
      {"cap_ignored", "vLLM: softcap not passed to a backend", "cap/causal", cap,
       score([](P p, A, double dot, double) { return dot * p.scale; })},
      {"cap_before_scale", "FlashAttention: scale / cap folded wrongly", "cap/causal", either(cap, scale),
       score([](P p, A, double dot, double) { return p.capped(dot) * p.scale; })},
      {"cap_twice", "Gemma 2: capped by the model and by the kernel", "cap/causal", cap,
       score([](P p, A, double, double old) { return p.capped(old); })},
      {"cap_not_multiplied", "common mistake: tanh(s / cap)", "cap/causal", either(cap, scale),
       score([](P p, A, double, double old) { return old / p.cap; })},
      {"cap_not_divided", "common mistake: cap tanh(s)", "cap/causal", cap,
       score([](P p, A, double dot, double) { return p.cap * std::tanh(dot * p.scale); })},
      {"cap_clips", "common mistake: clamp for tanh", "cap/none", cap,
       score([](P p, A, double dot, double) { return std::clamp(dot * p.scale, -p.cap, p.cap); })},
      {"cap_in_log2", "cap applied to scores times log2(e)", "cap/causal", either(cap, base2),
       score([](P p, A, double dot, double) { return p.capped(dot * p.scale / ln2) * ln2; })},
      {"cap_tanh_coarse", "tanh.approx.f32 and a rational formula", "cap/none", cap,
       score([](P p, A, double dot, double) {
         double const x = dot * p.scale / p.cap;
         return p.cap * x * (27 + x * x) / (27 + 9 * x * x);
       })},
      {"cap_hides_mask", "ONNX 7867: -inf capped to -cap", "cap/causal", either(cap, extra_keys),
       [](K& k) {
         problem const* p = k.p;
         k.logit = [p](pair_at a, double dot) { return p->sees(a) ? p->logit(a, dot) : -p->cap; };
         k.sees = [](pair_at) { return true; };
       }},
      {"cap_not_on_diagonal", "masked tiles take another path without the cap", "cap/causal", cap,
       score([](P p, A a, double dot, double old) { return p.position(a.i) / 32 == a.j / 32 ? dot * p.scale : old; })},
      {"cap_doubled", "common mistake: cap of another layer", "cap/none", cap,
       score([](P p, A, double dot, double) { return 2 * p.capped(dot * p.scale / 2); })},
      {"bias_after_cap", "onnxruntime 28370: softcap before the bias", "bias+cap/none", either(cap, bias),
       score([](P p, A a, double dot, double) { return p.capped(dot * p.scale) + p.added(a); })},
      {"sink_ignored", "FlashAttention 1973: sinks not passed", "sink/causal", sink,
       [](K& k) { k.sink = [](row_at, double) { return nothing; }; }},
      {"sink_next_head", "gpt-oss: sinks of a shard", "sink/causal", sink,
       [](K& k) { k.sink = [p = k.p](row_at r, double) { return p->sink[std::size_t((r.h + 1) % p->heads)]; }; }},
      {"sink_of_group", "gpt-oss: sink by key head", "sink/causal", sink,
       [](K& k) { k.sink = [p = k.p](row_at r, double) { return p->sink[std::size_t(r.h / p->group())]; }; }},
      {"sink_scaled", "gpt-oss: sink multiplied by the scale", "sink/causal", sink,
       [](K& k) { k.sink = [p = k.p](row_at r, double) { return p->sink[std::size_t(r.h)] * p->scale; }; }},
      {"sink_base2", "FlashInfer: sink without log2(e)", "sink/causal", either(sink, base2),
       [=](K& k) { k.sink = [p = k.p](row_at r, double) { return p->sink[std::size_t(r.h)] * ln2; }; }},
      {"sink_not_shifted", "common mistake: e^sink without the maximum", "sink/none", sink,
       [](K& k) { k.sink = [p = k.p](row_at r, double top) { return p->sink[std::size_t(r.h)] + top; }; }},
      {"sink_twice", "common mistake: two warps add the sink", "sink/none", sink,
       [=](K& k) { k.sink = [p = k.p](row_at r, double) { return p->sink[std::size_t(r.h)] + ln2; }; },
       "0\\.69|twice|double"},
      {"sink_in_each_split", "vLLM: sink in each split of keys", "sink/causal", either(sink, merge),
       [](K& k) { k.splits = {down_to(k.p->keys / 2, 16)}, k.sink_in_splits = true; }},
      {"alibi_ignored", "common mistake: slopes not passed", "alibi/causal", alibi, slopes([](P, int) { return 0.0; })},
      {"alibi_from_one", "aprender 2143: 2^(-8 h / n)", "alibi/causal", alibi,
       slopes([](P p, int h) { return std::exp2(-8.0 * h / p.heads); })},
      {"alibi_sign", "attention-gym 86: q - kv", "alibi/causal", alibi,
       slopes([](P p, int h) { return -double(p.slope[std::size_t(h)]); })},
      {"alibi_next_head", "common mistake: slopes of a shard", "alibi/causal", alibi,
       slopes([](P p, int h) { return double(p.slope[std::size_t((h + 1) % p.heads)]); })},
      {"alibi_of_group", "llama.cpp 20031: slopes under GQA", "alibi/causal", alibi,
       slopes([](P p, int h) { return double(p.slope[std::size_t(h / p.group())]); })},
      {"alibi_no_offset",
       "vLLM 945: distance from the wrong position",
       "alibi/none",
       either(alibi, align),
       score([](P p, A a, double dot, double) {
         return dot * p.scale - double(p.slope[std::size_t(a.h)]) * std::abs(a.i - a.j);
       }),
       {},
       {},
       shapes::unequal},
      {"alibi_scaled", "common mistake: bias added before the scale", "alibi/causal", alibi,
       slopes([](P p, int h) { return p.scale * double(p.slope[std::size_t(h)]); })},
      {"alibi_log2", "Triton: slope times log2(e) twice", "alibi/causal", either(alibi, base2),
       slopes([](P p, int h) { return double(p.slope[std::size_t(h)]) / ln2; }), "\\+ ?44"},
      {"alibi_one_sided", "common mistake: no absolute value for later keys", "alibi/none", alibi,
       score([](P p, A a, double dot, double) {
         return dot * p.scale - double(p.slope[std::size_t(a.h)]) * (p.position(a.i) - a.j);
       })},
      {"bias_ignored", "common mistake: attn_bias dropped", "bias/none", bias, biased([](P, A) { return 0.0; })},
      {"bias_transposed",
       "xformers: bias (k, q)",
       "bias/none",
       either(bias, layout),
       biased([](P p, A a) { return p.bias(0, a.h, a.j, a.i); }),
       {},
       {},
       shapes::equal},
      {"bias_head_zero", "common mistake: broadcast over heads", "bias/none", bias,
       biased([](P p, A a) { return p.bias(0, 0, a.i, a.j); })},
      {"bias_next_head", "common mistake: head stride of the bias", "bias/none", bias,
       biased([](P p, A a) { return p.bias(0, (a.h + 1) % p.heads, a.i, a.j); })},
      {"bias_row_zero", "common mistake: broadcast over queries", "bias/none", bias,
       biased([](P p, A a) { return p.bias(0, a.h, 0, a.j); })},
      {"bias_scaled", "common mistake: bias added before the scale", "bias/none", either(bias, scale),
       biased([](P p, A a) { return p.scale * p.bias(0, a.h, a.i, a.j); })},
      {"bias_one_column", "common mistake: column j + 1", "bias/none", bias,
       biased([](P p, A a) { return p.bias(0, a.h, a.i, (a.j + 1) % p.keys); })},
      {"bias_subtracted", "common mistake: sign", "bias/none", bias,
       biased([](P p, A a) { return -p.bias(0, a.h, a.i, a.j); })},
      {"bias_padded_stride", "xformers: bias rows padded to 8", "bias/none", either(bias, layout),
       biased([](P p, A a) { return p.bias(0, a.h, a.i, (a.j + 8 * a.i) % p.keys); })},
      {"bias_not_in_tail",
       "tail tile without the bias",
       "bias/none",
       bias,
       biased([](P p, A a) { return a.j >= down_to(p.keys - 1, 32) ? 0 : p.bias(0, a.h, a.i, a.j); }),
       {},
       [](K const& k, int j) { return j >= down_to(k.p->keys - 1, 32); }},
  };
}

}  // namespace attune::test::held
