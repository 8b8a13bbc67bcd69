// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Forward rows of the held-out grammar: masks, pages and tails.
#pragma once

#include "forward.hpp"
#include "words.hpp"

namespace attune::test::held {

using forward_row = row<forward_kernel>;

inline std::vector<forward_row> mask_rows() {
  using namespace words;
  using K = forward_kernel;
  auto const see = [](auto f) {
    return [f](K& k) {
      problem const* p = k.p;
      k.see([p, f](pair_at a, bool old) { return f(*p, a, old); });
    };
  };
  using P = problem const&;
  using A = pair_at;
  text const one = "\\+ ?1\\b|by 1\\b|one key|1 key|i \\+ 1|by one",
             minus = "- ?1\\b|by 1\\b|one key|1 key|by one|diagonal";
  return {
      {"causal_one_ahead", "zml 763, common mistake: causal compares with i + 1", "causal", edge,
       see([](P p, A a, bool) { return a.j <= p.position(a.i) + 1; }), one},
      {"causal_self_hidden", "common mistake: j < i", "causal", either(edge, "own key|itself|self"),
       see([](P p, A a, bool) { return a.j < p.position(a.i); }), minus},
      {"causal_top_left",
       "FlashAttention 2.0 to 2.1: alignment of causal masks",
       "causal",
       align,
       see([](P, A a, bool) { return a.j <= a.i; }),
       {},
       {},
       shapes::unequal},
      {"causal_bottom_right",
       "PyTorch sdpa is_causal with Lq != Lk",
       "start",
       align,
       see([](P p, A a, bool) { return a.j <= a.i + p.keys - p.queries; }),
       {},
       {},
       shapes::unequal},
      {"causal_ignored", "HunyuanVideo 310: mask dropped on one path", "causal", future,
       see([](P, A, bool) { return true; })},
      {"causal_last_rows_open", "FlexAttention: length 137, last 9 rows differ", "causal", future,
       see([](P p, A a, bool old) { return old || a.i >= down_to(p.queries - 1, 32); })},
      {"causal_whole_tiles", "common mistake: diagonal tile not masked", "causal", either(tile_edge, future),
       see([](P p, A a, bool) { return a.j / 32 <= p.position(a.i) / 32; })},
      {"causal_tiles_of_16", "Triton tutorial: masks skip by blocks", "causal", either(tile_edge, future),
       see([](P p, A a, bool) { return a.j <= (p.position(a.i) | 15); })},
      {"causal_half_tile", "common mistake: second warp's row index misses 16", "causal", either(edge, lost_keys),
       see([](P p, A a, bool) { return a.j <= p.position(a.i) - (a.i % 32 >= 16 ? 16 : 0); })},
      {"causal_one_head", "FlashAttention: pack_gqa row index", "causal", edge,
       see([](P p, A a, bool) { return a.j <= p.position(a.i) + (a.h == 1 ? 1 : 0); }), one},
      {"causal_second_batch", "vLLM: stale context length of a batch element", "causal", either(edge, align),
       see([](P p, A a, bool) { return a.j <= p.position(a.i) + (a.b == 1 ? 3 : 0); }), "\\+ ?3\\b|by 3\\b|3 keys"},
      {"causal_group_row", "FlashAttention pack_gqa: row / group for row", "causal", either(edge, lost_keys),
       see([](P p, A a, bool) { return a.j <= (a.i & ~1) + p.offset; })},
      {"window_one_more", "transformers 39408: window_size is inclusive", "window", window,
       see([](P p, A a, bool) { return a.j <= p.position(a.i) && a.j >= p.position(a.i) - p.window; }), one},
      {"window_one_less", "common mistake: window excludes its last key", "window", window,
       see([](P p, A a, bool old) { return old && a.j > p.position(a.i) - p.window + 1; }), minus},
      {"window_ignored", "transformers 41228: sliding mask dropped", "window",
       either(window, "mask.*(ignored|missing)"), see([](P p, A a, bool) { return a.j <= p.position(a.i); })},
      {"window_tile_start", "common mistake: first tile of a window not masked", "window", either(window, tile_edge),
       see([](P p, A a, bool) {
         return a.j <= p.position(a.i) && a.j >= down_to(std::max(0, p.position(a.i) - p.window + 1), 16);
       })},
      {"window_doubled", "transformers: (w, w) with a total of 2 w + 1", "window", either(window, future),
       see([](P p, A a, bool) { return std::abs(a.j - p.position(a.i)) < p.window; })},
      {"band_right_excluded", "FlashAttention 895: right bound", "band", right_window,
       see([](P p, A a, bool old) { return old && a.j < p.position(a.i) + p.after; }), minus},
      {"band_sides_swapped", "common mistake: left and right exchanged", "band", either(right_window, window),
       see([](P p, A a, bool) { return a.j >= p.position(a.i) - p.after && a.j <= p.position(a.i) + p.before; })},
      {"band_right_ignored", "FlashAttention 2199: window on one side", "band", right_window,
       see([](P p, A a, bool) { return a.j >= p.position(a.i) - p.before; })},
      {"band_from_start",
       "FlashAttention 1778: offset missing in a local mask",
       "band",
       either(align, right_window),
       see([](P p, A a, bool) { return a.j >= a.i - p.before && a.j <= a.i + p.after; }),
       {},
       {},
       shapes::unequal},
      {"padding_ignored",
       "TransformerEngine: padding mask not passed on",
       "pad",
       either(padding, future),
       see([](P, A, bool) { return true; }),
       {},
       [](K const& k, int j) { return j >= k.p->lengths[0]; }},
      {"padding_one_more", "common mistake: j <= length", "pad", either(padding, edge),
       see([](P p, A a, bool) { return a.j <= p.lengths[std::size_t(a.b)]; }), one},
      {"padding_rounded", "llama.cpp: KV length padded to a tile", "pad", either(padding, tile_edge),
       see([](P p, A a, bool) { return a.j < up_to(int(p.lengths[std::size_t(a.b)]), 32); })},
      {"padding_other_batch", "vLLM: lengths of another batch element", "pad", either(padding, batch),
       see([](P p, A a, bool) { return a.j < p.lengths[std::size_t(1 - a.b)]; })},
      {"padding_left", "transformers: left padding taken for right", "pad", either(padding, "left|lost|missing|keys"),
       see([](P p, A a, bool) { return a.j >= p.keys - p.lengths[std::size_t(a.b)]; })},
      {"padding_moves_diagonal", "TransformerEngine 399: diagonal from actual lengths", "padcausal",
       either(align, edge),
       see([](P p, A a, bool old) { return old && a.j <= a.i + p.lengths[std::size_t(a.b)] - p.queries; })},
      {"documents_ignored", "HunyuanVideo 310: cu_seqlens ignored", "docs", either(documents, future),
       see([](P p, A a, bool) { return a.j <= p.position(a.i); })},
      {"documents_one_late", "common mistake: cu_seqlens off by one", "docs", either(documents, edge),
       see([](P p, A a, bool) {
         return a.j <= p.position(a.i) && p.query_document(a.b, a.i) == p.key_document(a.b, std::max(0, a.j - 1));
       })},
      {"documents_by_tile", "FlexAttention 133562: block size of the mask", "docs", either(documents, tile_edge),
       see([](P p, A a, bool) {
         return a.j <= p.position(a.i) && p.query_document(a.b, a.i) == p.key_document(a.b, down_to(a.j, 16));
       })},
      {"documents_previous_too", "varlen: cu_seqlens[b - 1] read", "docs", either(documents, future),
       see([](P p, A a, bool) {
         auto const d = p.query_document(a.b, a.i) - p.key_document(a.b, a.j);
         return a.j <= p.position(a.i) && d >= 0 && d <= 1;
       })},
      {"documents_first_batch", "varlen: one cu_seqlens for all batch elements", "docs", either(documents, batch),
       see([](P p, A a, bool) {
         return a.j <= p.position(a.i) && p.query_document(0, a.i) == p.key_document(0, a.j);
       })},
      {"prefix_ignored",
       "PaliGemma: prefix treated as causal",
       "prefix",
       either(prefix, "future|keys|mask"),
       see([](P p, A a, bool) { return a.j <= p.position(a.i); }),
       {},
       {},
       shapes::equal},
      {"prefix_rounded",
       "common mistake: prefix by whole tiles",
       "prefix",
       either(prefix, tile_edge),
       see([](P p, A a, bool old) { return old || a.j < up_to(p.prefix, 32); }),
       {},
       {},
       shapes::equal},
      {"chunk_one_late", "Llama 4: chunk of i - 1", "chunk", either(chunk, edge), see([](P p, A a, bool) {
         return a.j <= p.position(a.i) && std::max(0, p.position(a.i) - 1) / p.chunk == std::max(0, a.j - 1) / p.chunk;
       })},
      {"chunk_not_causal", "common mistake: causal lost within chunks", "chunk", either(chunk, future),
       see([](P p, A a, bool) { return p.query_document(a.b, a.i) == p.key_document(a.b, a.j); })},
      {"chunk_slides", "Llama 4: chunked taken for sliding", "chunk", either(chunk, window),
       see([](P p, A a, bool) { return a.j <= p.position(a.i) && a.j > p.position(a.i) - p.chunk; })},
      {"first_tokens_lost",
       "StreamingLLM: sink tokens evicted",
       "firstwindow",
       first_keys,
       see([](P p, A a, bool old) { return old && (a.j >= p.first || a.j > p.position(a.i) - p.window); }),
       {},
       [](K const& k, int j) { return j < k.p->first; }},
      {"first_tokens_one_less",
       "StreamingLLM: j < s - 1",
       "firstwindow",
       either(first_keys, "key 3|mask"),
       see([](P p, A a, bool old) { return old && (a.j != p.first - 1 || a.j > p.position(a.i) - p.window); }),
       {},
       [](K const& k, int j) { return j == k.p->first - 1; }},
      {"key_zero_lost",
       "common mistake: loop begins at 1",
       "causal",
       either(lost_keys, first_keys),
       see([](P, A a, bool old) { return old && a.j != 0; }),
       {},
       [](K const&, int j) { return j == 0; }},
      {"blocks_transposed", "FlexAttention 141126: block mask by (kv, q)", "window",
       either(window, either(tile_edge, edge)), see([](P p, A a, bool old) {
         int const t = 32;
         return old && std::abs(p.position(a.i) / t - a.j / t) < 1;
       })},
      // Pages of 16 keys.
      {"page_last_key",
       "paged cache: last slot of each page dropped",
       "none",
       either(lost_keys, pages),
       see([](P, A a, bool) { return a.j % 16 != 15; }),
       {},
       [](K const&, int j) { return j % 16 == 15; }},
      {"page_first_key",
       "paged cache: first slot of each page dropped",
       "causal",
       either(lost_keys, pages),
       see([](P, A a, bool old) { return old && (a.j % 16 != 0 || a.j == 0); }),
       {},
       [](K const&, int j) { return j % 16 == 0 && j > 0; }},
      {"page_stale",
       "vLLM: page reused before it was copied",
       "none",
       either(pages, stale),
       [](K& k) {
         auto const f = [](array const& old, int b, int h, int j, int c) {
           return b == 0 && j / 16 == 3 ? old(1, h, j - 32, c) : old(b, h, j, c);
         };
         k.k.change(f), k.v.change(f);
       },
       {},
       [](K const&, int j) { return j / 16 == 3; }},
      {"page_stale_v",
       "vLLM: v of a page not yet written",
       "none",
       either(pages, stale),
       [](K& k) {
         k.v.change([](array const& old, int b, int h, int j, int c) { return j / 16 == 5 ? 0 : old(b, h, j, c); });
       },
       {},
       [](K const&, int j) { return j / 16 == 5; }},
      {"pages_of_v_swapped",
       "ik_llama 2031: K and V walk different rows",
       "none",
       either(pages, key_order),
       [](K& k) {
         k.v.change([](array const& old, int b, int h, int j, int c) {
           return old(b, h, j / 16 == 2 ? j + 16 : j / 16 == 3 ? j - 16 : j, c);
         });
       },
       {},
       [](K const&, int j) { return j >= 32 && j < 64; }},
      {"page_table_other_batch", "SGLang: page table row of another request", "none", either(pages, batch),
       [](K& k) {
         auto const f = [](array const& old, int, int h, int j, int c) { return old(0, h, j, c); };
         k.k.change(f), k.v.change(f);
       }},
      {"page_last_missing",
       "paged cache: length / page without rounding up",
       "none",
       either(lost_keys, pages),
       see([](P p, A a, bool) { return a.j < down_to(p.keys - 1, 16); }),
       {},
       [](K const& k, int j) { return j >= down_to(k.p->keys - 1, 16); }},
      {"page_shared",
       "prefix cache: two pages point to one block",
       "none",
       either(pages, either(key_order, doubled)),
       [](K& k) {
         auto const f = [](array const& old, int b, int h, int j, int c) {
           return old(b, h, j / 16 == 4 ? j - 16 : j, c);
         };
         k.k.change(f), k.v.change(f);
       },
       {},
       [](K const&, int j) { return j / 16 == 4 || j / 16 == 3; }},
      // Tails.
      {"tail_keys_lost",
       "CK: last partial tile of keys skipped",
       "none",
       lost_keys,
       see([](P p, A a, bool) { return a.j < down_to(p.keys, 32); }),
       {},
       [](K const& k, int j) { return j >= down_to(k.p->keys, 32); }},
      {"last_key_lost",
       "common mistake: loop ends at L - 1",
       "none",
       lost_keys,
       see([](P p, A a, bool) { return a.j != p.keys - 1; }),
       {},
       [](K const& k, int j) { return j == k.p->keys - 1; }},
      {"last_key_repeated",
       "clamped loads of the tail counted",
       "none",
       either(doubled, tail_sum),
       [](K& k) {
         int const last = k.p->keys - 1, extra = up_to(k.p->keys, 32) - k.p->keys;
         k.in_sum = k.in_out = [=](pair_at a, double w) { return a.j == last ? w * (1 + extra) : w; };
       },
       {},
       [](K const& k, int j) { return j == k.p->keys - 1; }},
      {"tail_queries_zero", "Triton: last block of queries not stored", "causal", unwritten,
       [](K& k) {
         k.finally([n = down_to(k.p->queries, 32)](array& out, array&) {
           out.change([=](array const& o, int b, int h, int i, int c) { return i >= n ? 0 : o(b, h, i, c); });
         });
       }},
      {"last_query_repeats", "common mistake: clamped index of the last row", "causal", other_row,
       [](K& k) {
         k.finally([](array& out, array&) {
           out.change([](array const& o, int b, int h, int i, int c) { return o(b, h, std::min(i, o.length - 2), c); });
         });
       }},
      {"tail_queries_first_tile",
       "Triton: loop bound of the last block of queries",
       "none",
       lost_keys,
       see([](P p, A a, bool) { return a.i < down_to(p.queries - 1, 32) || a.j < 32; }),
       {},
       [](K const&, int j) { return j >= 32; }},
  };
}

}  // namespace attune::test::held
