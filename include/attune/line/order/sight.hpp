// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   query i of a head sees the keys [seen[i].first, seen[i].last)      neither end moves back as i grows
//
// The condition that every algorithm on a line needs of a mask. It makes the visible pairs split into few rectangles
// (order.hpp), for any scalars.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <attune/exec/problem.hpp>
#include <attune/line/call/problem.hpp>
#include <attune/policies/mask/combine.hpp>

namespace attune::line::detail {

/// Masks whose rows are intervals of keys: declared ones, documents whose ids ascend, and intersections of such masks.
template <class Mask>
inline constexpr bool has_intervals = Mask::form != mask_form::predicate;
template <class Mask>
  requires requires(Mask const& m, mask_row const& r) { m.interval_of(r); }
inline constexpr bool has_intervals<Mask> = true;
template <class A, class B>
inline constexpr bool has_intervals<mask::intersection<A, B>> = has_intervals<A> && has_intervals<B>;

/// The interval of a row; calls another(one, more) if the row has several.
template <class Mask, class Another>
key_interval interval_of(Mask const& m, mask_row const& row, Another const& another) {
  if constexpr (requires { m.interval_of(row); }) {
    return m.interval_of(row);
  } else {
    key_interval const k = mask::next(m, row, 0);
    if (k.empty()) return {};
    if (key_interval const more = mask::next(m, row, k.last); !more.empty()) another(k, more);
    return k;
  }
}
template <class A, class B, class Another>
key_interval interval_of(mask::intersection<A, B> const& m, mask_row const& row, Another const& another) {
  key_interval const a = interval_of(m.first, row, another), b = interval_of(m.second, row, another);
  key_interval const both{(std::max)(a.first, b.first), (std::min)(a.last, b.last)};
  return both.empty() ? key_interval{} : both;
}

template <class Mask>
void check_order(char const* function, Mask const& m, mask_shape const& s) {
  if constexpr (requires { m.check_order(function, s); }) m.check_order(function, s);
}
template <class A, class B>
void check_order(char const* function, mask::intersection<A, B> const& m, mask_shape const& s) {
  check_order(function, m.first, s);
  check_order(function, m.second, s);
}

class sight {
 public:
  /// One interval per query, or all keys.
  sight(std::vector<key_interval> seen, bool all) : all_(all), seen_(std::move(seen)) {}
  /// For a mask that passed require_intervals.
  template <class Mask>
  sight(Mask const& m, problem_shape const& p, index_t b, index_t h) {
    index_t reach = 0;  // position for the empty interval of a query without keys
    for (index_t i = 0; i < p.queries; ++i) {
      key_interval k = interval_of(m, p.row(b, h, i), [](key_interval const&, key_interval const&) {});
      if (k.empty()) k = {reach, reach};
      reach = k.last;
      all_ = all_ && k.first == 0 && k.last == p.keys;
      seen_.push_back(k);
    }
  }

  bool sees_all() const { return all_; }
  std::vector<key_interval> const& intervals() const { return seen_; }

 private:
  bool all_ = true;
  std::vector<key_interval> seen_;
};

/// Throws attune::error unless each query sees one interval of keys, and neither end moves back. O(Lq log Lk).
template <class Mask>
void require_intervals(char const* function, Mask const& m, problem_shape const& p) {
  static_assert(has_intervals<Mask>,
                "attune: a mask by predicate is asked pair by pair, and an operator on a line does not meet all pairs; "
                "give it a mask made of intervals (causal, window, documents, and &), or take op.dense()");
  check_order(function, m, {p.batch, p.heads, p.queries, p.keys, memory_kind::host});
  for (index_t b = 0; b < p.batch; ++b)
    for (index_t h = 0; h < p.heads; ++h) {
      key_interval before{0, 0};
      for (index_t i = 0; i < p.queries; ++i) {
        auto const refuse = [&](std::string const& sees) {
          throw error(function, "the mask", attune::detail::text("query ", i, " of head ", h, " sees ", sees),
                      "one interval of keys for each query, whose ends never move back; op.dense() takes every mask");
        };
        auto const shown = [](key_interval const& x) { return attune::detail::text("[", x.first, ", ", x.last, ")"); };
        key_interval const k = interval_of(m, p.row(b, h, i), [&](key_interval const& one, key_interval const& more) {
          refuse(shown(one) + " and " + shown(more));
        });
        if (k.empty()) continue;
        if (k.first < before.first || k.last < before.last) refuse(shown(k) + " after " + shown(before));
        before = k;
      }
    }
}

}  // namespace attune::line::detail
