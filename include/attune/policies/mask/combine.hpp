// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   a & b: both masks show the key        a | b: at least one of them does
#pragma once

#include <attune/policies/mask/concepts.hpp>

namespace attune::mask {

/// Keys that both masks show. K is the count of the intersection.
template <class A, class B>
struct intersection {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::intervals;
  static constexpr bool checks_shape = true;
  [[no_unique_address]] A first;   ///< the left mask
  [[no_unique_address]] B second;  ///< the right mask

  /// Usually written a & b.
  constexpr intersection(A a, B b) : first(a), second(b) {}
  ATTUNE_HD constexpr key_interval next(mask_row const& r, index_t from) const {
    for (;;) {
      key_interval const a = mask::next(first, r, from);
      if (a.empty()) return {};
      key_interval const b = mask::next(second, r, a.first);
      if (b.empty()) return {};
      if (b.first < a.last) return {b.first, detail::at_most(a.last, b.last)};
      from = b.first;
    }
  }
  void check(mask_shape const& s) const {
    mask::check(first, s);
    mask::check(second, s);
  }
};

/// Keys that at least one of the masks shows.
template <class A, class B>
struct union_of {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::intervals;
  static constexpr bool checks_shape = true;
  [[no_unique_address]] A first;   ///< the left mask
  [[no_unique_address]] B second;  ///< the right mask

  /// Usually written a | b.
  constexpr union_of(A a, B b) : first(a), second(b) {}
  ATTUNE_HD constexpr key_interval next(mask_row const& r, index_t from) const {
    key_interval const a = mask::next(first, r, from), b = mask::next(second, r, from);
    if (a.empty()) return b;
    if (b.empty()) return a;
    key_interval u = a.first <= b.first ? a : b;
    for (bool grown = true; grown;) {  // the masks may extend the interval in turn
      grown = false;
      if (key_interval const x = mask::next(first, r, u.last); !x.empty() && x.first == u.last)
        u.last = x.last, grown = true;
      if (key_interval const x = mask::next(second, r, u.last); !x.empty() && x.first == u.last)
        u.last = x.last, grown = true;
    }
    return u;
  }
  void check(mask_shape const& s) const {
    mask::check(first, s);
    mask::check(second, s);
  }
};

}  // namespace attune::mask

namespace attune {

/// A mask that shows the keys that both masks show.
template <class A, class B>
  requires MaskPolicy<A> && MaskPolicy<B>
constexpr mask::intersection<A, B> operator&(A a, B b) {
  return {a, b};
}

/// A mask that shows the keys that at least one of the masks shows.
template <class A, class B>
  requires MaskPolicy<A> && MaskPolicy<B>
constexpr mask::union_of<A, B> operator|(A a, B b) {
  return {a, b};
}

}  // namespace attune

namespace attune::mask {

using attune::operator&;  // found by argument-dependent lookup from here
using attune::operator|;

}  // namespace attune::mask
