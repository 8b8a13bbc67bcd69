// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   decode(cpu{}, op, {.q = Q, .k = K_pages, .v = V_pages}, page_table(numbers, batch), {.out = O})
//
// A cache in pages. Sequences grow page by page, share pages and return them. Nothing is copied together for a call.
#pragma once

#include <attune/exec/cpu/decode/decode.hpp>
#include <attune/exec/cpu/decode/stored.hpp>

namespace attune {

namespace exec_cpu {

/// A view of a page's rows with the extents of a call without pages. For checks only: the rows are elsewhere.
template <class E>
tensor<E const> with_extents(tensor<E const> const& x, shape const& e) {
  static constexpr E nothing{};
  return {x.absent() || e.size() == 0 || x.data() == nullptr ? &nothing : x.data(), e, x.steps()};
}
/// For a view that does it itself.
template <class View>
  requires requires(View const& x, shape const& e) { x.with_extents(e); }
View with_extents(View const& x, shape const& e) {
  return x.with_extents(e);
}
/// The inputs with the extents of a call without pages: (batch, heads, keys, width). For checks only.
template <class Op, class View>
inputs<Op, View> in_one_piece(inputs<Op, View> const& in, page_table const& table) {
  shape const v = in.v.extents();
  attune::detail::require_at_least_one("decode", "v", "position", v.position);
  auto one_piece = in;
  for_each_field([&]<field F>() {
    if constexpr (Op::uses(F) && side_of(F) == input_side::key) {
      View const& x = member<F>(in);
      shape e = x.extents();
      attune::detail::require_extent("decode", name_of(F), "batch", e.batch, v.batch, "the number of pages of v");
      attune::detail::require_extent("decode", name_of(F), "position", e.position, v.position,
                                     "the keys of a page of v");
      e.batch = table.batch();
      e.position = table.per_sequence() * v.position;
      member<F>(one_piece) = with_extents(x, e);
    }
  });
  return one_piece;
}

/// Throws if a query sees a key of a page that does not exist. `position`: of the first key of the table.
template <class Mask>
ATTUNE_NOINLINE void check_pages(Mask const& m, problem_shape const& p, page_table const& table, index_t size,
                                 index_t pages, index_t position = 0) {
  auto const exists = [&](index_t b, index_t n) { return table(b, n) >= 0 && table(b, n) < pages; };
  for (index_t b = 0; b < p.batch; ++b)
    for (index_t n = 0; n < table.per_sequence(); ++n) {
      if (exists(b, n)) continue;
      index_t const first = n;
      while (n + 1 < table.per_sequence() && !exists(b, n + 1)) ++n;
      for (index_t h = 0; h < p.heads; ++h)
        for (index_t i = 0; i < p.queries; ++i) {
          key_interval const seen = mask::next(m, p.row(b, h, i), position + first * size);
          if (seen.empty() || seen.first >= position + (n + 1) * size) continue;
          index_t const at = (seen.first - position) / size;
          throw error(
              "decode", attune::detail::text("pages(", b, ", ", at, ")"),
              attune::detail::text("the value ", table(b, at)),
              attune::detail::text("a page in [0, ", pages, "): query ", i, " of head ", h, " sees key ", seen.first));
        }
    }
}

/// Checks a call. Passes to `run` its inputs with the extents of a call without pages, and these extents.
template <class Op, class View, class Out, class Run>
void with_checked_pages(Op const& op, inputs<Op, View> const& in, page_table const& pages, outputs<Op, Out> const& out,
                        Run const& run) {
  auto const one_piece = in_one_piece<Op, View>(in, pages);
  attune::detail::require_extent("decode", "pages", "batch", pages.batch(), out.out.extents().batch,
                                 "the batch of out");
  problem_shape const p = attune::detail::checked_problem("decode", op, one_piece, out.out.extents());
  attune::detail::check_outputs("decode", out, p);
  check_pages(op.mask, p, pages, in.v.extents().position, in.v.extents().batch);
  run(one_piece, p);
}
/// Checks a call and passes its keys and extents to `run`.
template <class Op, class E, class Out, class Run>
void decode_pages(Op const& op, inputs<Op, tensor<E const>> const& in, page_table const& pages,
                  outputs<Op, Out> const& out, Run const& run) {
  with_checked_pages<Op, tensor<E const>>(op, in, pages, out, [&](auto const& one_piece, problem_shape const& p) {
    run(paged_keys<Op, E>(in, one_piece, pages), p);
  });
}

}  // namespace exec_cpu

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
/// Types:  the same as for decode(), 16-bit tensors included.
/// Errors: the same as for decode(); also a page that does not exist and has a key that some query sees.
template <class T, class Arch, class Op>
void decode(cpu<T, Arch> exec, Op const& op, inputs<Op, tensor<T const>> const& in, page_table const& pages,
            outputs<Op, T> const& out) {
  exec_cpu::require_decodable<Op>();
  exec_cpu::decode_pages(op, in, pages, out, [&](auto const& keys, problem_shape const& p) {
    if constexpr (storage_only<T>)
      exec_cpu::decode_stored(exec, op, keys, p, out);
    else
      exec_cpu::decode(exec, op, keys, p, out);
  });
}

}  // namespace attune
