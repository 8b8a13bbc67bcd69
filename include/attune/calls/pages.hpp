// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The keys of decode(): one piece of memory, or pages. Sequences grow page by page, share pages and return them.
// Nothing is copied together for a call.
#pragma once

#include <attune/core/page_table.hpp>
#include <attune/exec/problem.hpp>

namespace attune::detail {

/// Inputs whose keys lie in one piece.
template <class Op, class View>
struct whole_cache {
  inputs<Op, View> in;
  /// The inputs with the extents of a call without pages.
  inputs<Op, View> const& whole() const { return in; }
  /// The same keys for an operator of a fold.
  template <class Part>
  whole_cache<Part, View> of() const {
    return {narrowed<Part>(in)};
  }
};
/// Inputs whose keys lie in pages.
template <class Op, class View>
struct paged_cache {
  inputs<Op, View> in, one_piece;  ///< one_piece: with the extents of a call without pages, for checks only
  page_table const& pages;
  inputs<Op, View> const& whole() const { return one_piece; }
  template <class Part>
  paged_cache<Part, View> of() const {
    return {narrowed<Part>(in), narrowed<Part>(one_piece), pages};
  }
};

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
  require_at_least_one("decode", "v", "position", v.position);
  auto one_piece = in;
  for_each_field([&]<field F>() {
    if constexpr (Op::uses(F) && side_of(F) == input_side::key) {
      View const& x = member<F>(in);
      shape e = x.extents();
      require_extent("decode", name_of(F), "batch", e.batch, v.batch, "the number of pages of v");
      require_extent("decode", name_of(F), "position", e.position, v.position, "the keys of a page of v");
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
          throw error("decode", text("pages(", b, ", ", at, ")"), text("the value ", table(b, at)),
                      text("a page in [0, ", pages, "): query ", i, " of head ", h, " sees key ", seen.first));
        }
    }
}

/// Checks the inputs of a call.
template <class Op, class View>
problem_shape checked_cache(char const* function, Op const& op, whole_cache<Op, View> const& cache, shape const& out) {
  return checked_problem(function, op, cache.in, out);
}
template <class Op, class View>
problem_shape checked_cache(char const* function, Op const& op, paged_cache<Op, View> const& cache, shape const& out) {
  problem_shape const p = checked_problem(function, op, cache.one_piece, out);
  check_pages(op.mask, p, cache.pages, cache.in.v.extents().position, cache.in.v.extents().batch);
  return p;
}

}  // namespace attune::detail
