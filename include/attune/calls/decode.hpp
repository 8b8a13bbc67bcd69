// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   decode(cpu{}, op, {.q = Q, .k = K, .v = V}, {.out = O})
//   decode(cpu{}, op, {.q = Q, .k = K_pages, .v = V_pages}, page_table(numbers, batch), {.out = O})
#pragma once

#include <attune/calls/composite.hpp>
#include <attune/calls/executor.hpp>
#include <attune/calls/pages.hpp>

namespace attune {

/// Whether decode() is faster than forward() for outputs of these extents: at most 4 queries, whatever the vectors.
/// Calls through the C interface, so from Python, take decode() there if the operator has it and nothing is saved.
constexpr bool reads_like_decode(shape const& out) { return out.position <= 4; }

namespace detail {
/// Checks a call of decode() and runs it.
template <Executor Exec, class Op, class Cache>
void decode_cache(Exec const& exec, Op const& op, Cache const& cache,
                  outputs<Op, typename Exec::value_type> const& out) {
  if constexpr (Fold<Op>) {
    folded_call<Exec, Op>("decode", exec, op, cache.whole(), out.out.extents()).decode(cache, out);
  } else {
    problem_shape const p = checked_cache("decode", op, cache, out.out.extents());
    check_outputs("decode", out, p);
    decode_rows(typename Exec::engine{}, exec, op, cache, p, out);
  }
}
}  // namespace detail

/// forward() for few queries against a long cache. Every byte of K and V is read once for all query heads that share
/// it, and the keys are split over threads. Where reads_like_decode() holds, it is faster than forward(). Arguments,
/// outputs, contracts and errors are the same as for forward(). The results agree within the error bound, not bitwise.
/// 16-bit and 8-bit tensors: bitwise the same as for the widened inputs, with `out` rounded once.
/// Operators:   with an O(1) state (no candidate set), no value gate and no ordered sum.
/// Memory:      the states of all rows, once per chunk of keys (at most 64 chunks, of 1024 keys or more).
/// Determinism: bitwise the same for any number of threads, any strides and any batch.
template <Executor Exec, class Op>
void decode(Exec const& exec, Op const& op, inputs<Op, typename Exec::view> const& in,
            outputs<Op, typename Exec::value_type> const& out) {
  if constexpr (detail::offered<call_kind::decode, Exec, Op>())
    detail::decode_cache(exec, op, detail::whole_cache<Op, typename Exec::view>{in}, out);
}

/// decode() from a cache in pages. Tensors with a row per key (k, v, gate_k, sort_k, position_k, place, key_bias) are
/// (pages, heads, keys of a page, width). All have the same number of pages and of keys per page. Strides are free: use
/// them for a layout such as (page, key, head, feature). Lk is pages.per_sequence() times the keys of a page. Key j of
/// sequence b is row j mod size of page pages(b, j / size). Masks, positions, counts and tensors of pairs refer to
/// these keys.
/// Lengths that differ:  use mask::padding; table entries behind the end of a sequence may be anything.
/// Selected pages:       use a mask that shows only some keys (positions stay, unseen pages are not read), or a table
///                       that lists only some pages (positions are those of the list). In both cases K counts the keys
///                       that are seen.
/// A page may appear at several places and in several sequences. Results agree with decode() within the bound. They are
/// bitwise the same if pages hold a multiple of 64 keys.
/// Types:  the same as for decode(), 16-bit and 8-bit tensors included. A scale of 8-bit tensors is for all pages.
/// Errors: the same as for decode(); also a page that does not exist and has a key that some query sees.
template <Executor Exec, class Op>
void decode(Exec const& exec, Op const& op, inputs<Op, typename Exec::view> const& in, page_table const& pages,
            outputs<Op, typename Exec::value_type> const& out) {
  if constexpr (detail::offered<call_kind::paged_decode, Exec, Op>()) {
    detail::paged_cache<Op, typename Exec::view> const cache{in, detail::in_one_piece(in, pages), pages};
    detail::require_extent("decode", "pages", "batch", pages.batch(), out.out.extents().batch, "the batch of out");
    detail::decode_cache(exec, op, cache, out);
  }
}

}  // namespace attune
