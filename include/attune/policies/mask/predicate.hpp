// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   rule(row, j)
#pragma once

#include <attune/policies/mask/concepts.hpp>

namespace attune::mask {

/// Any rule: a callable `bool(mask_row const&, index key)` that is trivially copyable (a lambda that captures values or
/// pointers). Every row is scanned: O(Lq Lk) calls of the rule, no memory.
template <class Rule>
struct predicate {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::predicate;
  Rule rule;  ///< the callable

  /// With rule = r.
  constexpr explicit predicate(Rule r) : rule(r) {}
  /// rule(r, j).
  ATTUNE_HD constexpr bool visible(mask_row const& r, index_t j) const { return rule(r, j); }
};

/// The same with the intervals of keys that a row may see: only these are scanned. `bounds` is a callable
/// `key_interval(mask_row const&, index from)` like may_see (mask/concepts.hpp). Keys outside are not visible.
template <class Rule, class Bounds>
struct bounded_predicate : predicate<Rule> {
  static constexpr bool bounds_keys = true;  ///< declares may_see
  Bounds bounds;                             ///< the callable

  /// With rule = r and bounds = b.
  constexpr bounded_predicate(Rule r, Bounds b) : predicate<Rule>(r), bounds(b) {}
  /// bounds(r, from).
  ATTUNE_HD constexpr key_interval may_see(mask_row const& r, index_t from) const { return bounds(r, from); }
};

}  // namespace attune::mask
