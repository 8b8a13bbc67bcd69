// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   a & b: both masks show the key        a | b: at least one of them does
#pragma once

#include <attune/policies/mask/concepts.hpp>

namespace attune::mask {

/// Keys that both masks show. K is the count of the intersection. A predicate scans only what the other mask may show.
template <class A, class B>
struct intersection {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::intervals;
  static constexpr bool checks_shape = true;
  A first;   ///< the left mask
  B second;  ///< the right mask

  constexpr intersection() = default;
  /// Usually written a & b.
  constexpr intersection(A a, B b) : first(a), second(b) {}
  ATTUNE_HD constexpr key_interval next(mask_row const& r, index_t from) const {
    if constexpr (!scans<A> && !scans<B>)
      return common(r, from);
    else  // a predicate is asked only about keys that the other mask may show
      return detail::first_run(
          from, [&](index_t at) { return common(r, at); },
          [&](index_t j) { return shows(first, r, j) && shows(second, r, j); });
  }
  constexpr bool same_for_heads() const { return mask::same_for_heads(first) && mask::same_for_heads(second); }
  void(check)(mask_shape const& s) const {
    (mask::check)(first, s);
    (mask::check)(second, s);
  }

 private:
  template <class M>
  static constexpr bool scans = M::form == mask_form::predicate;
  /// An interval that ends after `from` and contains the next keys that the mask shows; for a predicate without bounds,
  /// all keys.
  template <class M>
  ATTUNE_HD static constexpr key_interval part(M const& m, mask_row const& r, index_t from) {
    if constexpr (!scans<M>)
      return mask::next(m, r, from);
    else if constexpr (BoundsKeys<M>)
      return detail::bounds(m, r, detail::at_least(from, 0));
    else
      return {detail::at_least(from, 0), r.keys};
  }
  template <class M>
  ATTUNE_HD static constexpr bool shows([[maybe_unused]] M const& m, [[maybe_unused]] mask_row const& r,
                                        [[maybe_unused]] index_t j) {
    if constexpr (scans<M>)
      return m.visible(r, j);
    else
      return true;
  }
  /// The first interval that ends after `from` and lies in parts of both masks.
  ATTUNE_HD constexpr key_interval common(mask_row const& r, index_t from) const {
    for (;;) {
      key_interval const a = part(first, r, from);
      if (a.empty()) return {};
      key_interval const b = part(second, r, a.first);
      if (b.empty()) return {};
      if (b.first < a.last) return {b.first, detail::at_most(a.last, b.last)};
      from = b.first;
    }
  }
};

/// Keys that at least one of the masks shows.
template <class A, class B>
struct union_of {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::intervals;
  static constexpr bool checks_shape = true;
  A first;   ///< the left mask
  B second;  ///< the right mask

  constexpr union_of() = default;
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
  constexpr bool same_for_heads() const { return mask::same_for_heads(first) && mask::same_for_heads(second); }
  void(check)(mask_shape const& s) const {
    (mask::check)(first, s);
    (mask::check)(second, s);
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
