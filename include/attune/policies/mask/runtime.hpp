// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   any mask, chosen at run time
#pragma once

#include <attune/core/error.hpp>
#include <attune/policies/mask/concepts.hpp>

namespace attune::mask {

/// A mask whose arrays are chosen at run time: the hull of each row's keys and an optional dense table. Programs that
/// read masks from files or command lines then instantiate an operator once. With `visible` it is slower than a
/// compile-time mask (rows are scanned); with `hulls` alone it is as fast. The arrays must outlive the mask.
struct runtime {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::intervals;
  static constexpr bool checks_shape = true;

  /// One interval per row, shape (1 or B, 1 or H, Lq); null: all keys.
  key_interval const* hulls = nullptr;
  shape hull_shape{1, 1, 0, 1};  ///< extents of `hulls`: (1|B, 1|H, Lq, 1)
  /// Visibility inside the hull, shape (1 or B, 1 or H, 1 or Lq, Lk); null: all keys of the hull.
  unsigned char const* visible = nullptr;
  shape visible_shape{1, 1, 0, 0};  ///< extents of `visible`: (1|B, 1|H, 1|Lq, Lk)

  ATTUNE_HD constexpr key_interval next(mask_row const& r, index_t from) const {
    key_interval k{0, r.keys};
    if (hulls != nullptr)
      k = hulls[(pick(hull_shape.batch, r.batch) * hull_shape.head + pick(hull_shape.head, r.head)) * r.queries +
                r.query];
    k.first = detail::at_least(k.first, from);
    k.last = detail::at_most(k.last, r.keys);
    if (visible == nullptr) return k;
    unsigned char const* line =
        visible + ((pick(visible_shape.batch, r.batch) * visible_shape.head + pick(visible_shape.head, r.head)) *
                       visible_shape.position +
                   pick(visible_shape.position, r.query)) *
                      r.keys;
    while (k.first < k.last && line[k.first] == 0) ++k.first;
    index_t e = k.first;
    while (e < k.last && line[e] != 0) ++e;
    return {k.first, e};
  }
  constexpr bool same_for_heads() const {
    return (hulls == nullptr || hull_shape.head == 1) && (visible == nullptr || visible_shape.head == 1);
  }
  void(check)(mask_shape const& s) const {
    auto fits = [&](shape const& x) {
      return (x.batch == 1 || x.batch == s.batch) && (x.head == 1 || x.head == s.heads);
    };
    if (hulls != nullptr && (!fits(hull_shape) || hull_shape.position != s.queries))
      throw error("mask::runtime", "the array of hulls", attune::detail::text("shape ", to_string(hull_shape)),
                  attune::detail::text("(1 or ", s.batch, ", 1 or ", s.heads, ", ", s.queries, ", 1)"));
    if (visible != nullptr &&
        (!fits(visible_shape) || (visible_shape.position != 1 && visible_shape.position != s.queries) ||
         visible_shape.feature != s.keys))
      throw error("mask::runtime", "visible", attune::detail::text("shape ", to_string(visible_shape)),
                  attune::detail::text("(1 or ", s.batch, ", 1 or ", s.heads, ", 1 or ", s.queries, ", ", s.keys, ")"));
  }

 private:
  ATTUNE_HD static constexpr index_t pick(index_t extent, index_t at) { return extent == 1 ? 0 : at; }
};

}  // namespace attune::mask
