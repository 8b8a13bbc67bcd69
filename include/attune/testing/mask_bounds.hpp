// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   visible(row, j)  implies  an interval of may_see(row, ...) contains j
//
// Checks the promise of predicates with bounds, wherever they are in a mask. Executors rely on it and cannot afford to
// check it.
#pragma once

#include <string>

#include <attune/core/error.hpp>
#include <attune/exec/problem_shape.hpp>
#include <attune/policies/mask/combine.hpp>

namespace attune::testing::detail {

template <class Mask>
inline constexpr bool has_bounds = BoundsKeys<Mask>;
template <class A, class B>
inline constexpr bool has_bounds<mask::intersection<A, B>> = has_bounds<A> || has_bounds<B>;
template <class A, class B>
inline constexpr bool has_bounds<mask::union_of<A, B>> = has_bounds<A> || has_bounds<B>;

/// Calls visit(m) for every predicate with bounds in a mask.
template <class Mask, class Visit>
void for_each_bounded(Mask const& m, Visit const& visit) {
  if constexpr (BoundsKeys<Mask>) {
    visit(m);
  } else if constexpr (has_bounds<Mask>) {
    for_each_bounded(m.first, visit);
    for_each_bounded(m.second, visit);
  }
}

/// The first key that a predicate shows outside its bounds in a row; "" if there is none.
template <class Mask>
std::string broken_bounds(Mask const& m, mask_row const& r) {
  for (index_t j = 0; j < r.keys; ++j) {
    key_interval const k = m.may_see(r, j);
    if (m.visible(r, j) && (k.first > j || k.last <= j))
      return attune::detail::text("key ", j, " of row (", r.batch, ", ", r.head, ", ", r.query,
                                  "), which is visible outside the intervals of may_see");
  }
  return {};
}

/// The same for all rows of a call, and all predicates of a mask.
template <class Mask>
std::string broken_bounds(Mask const& m, problem_shape const& p) {
  std::string found;
  for_each_bounded(m, [&](auto const& one) {
    for (index_t b = 0; b < p.batch; ++b)
      for (index_t h = 0; h < p.heads; ++h)
        for (index_t i = 0; i < p.queries && found.empty(); ++i) found = broken_bounds(one, p.row(b, h, i));
  });
  return found;
}

}  // namespace attune::testing::detail
