// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   causal_window:  0 <= i + offset - j < width        window:  |i + offset - j| <= radius
#pragma once

#include <attune/policies/mask/concepts.hpp>

namespace attune::mask {

/// The `width` most recent keys, the query's own position included.
/// K = max(0, min(i + offset, Lk - 1) - max(0, i + offset - width + 1) + 1).
struct causal_window {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::interval;
  static constexpr bool checks_shape = true;
  constexpr bool same_for_heads() const { return true; }
  index_t width = 1;  ///< number of keys, at least 1

  ATTUNE_HD constexpr key_interval keys(mask_row const& r) const {
    return {detail::minus(r.position + 1, width), r.position + 1};
  }
  void(check)(mask_shape const&) const {
    if (width < 1) throw error("mask::causal_window", "width", attune::detail::text("the value ", width), "at least 1");
  }
};

/// Keys at a distance of at most `radius`, on both sides.
struct window {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::interval;
  static constexpr bool checks_shape = true;
  constexpr bool same_for_heads() const { return true; }
  index_t radius = 0;  ///< largest distance in positions, at least 0

  ATTUNE_HD constexpr key_interval keys(mask_row const& r) const {
    return {detail::minus(r.position, radius), detail::plus(r.position + 1, radius)};
  }
  void(check)(mask_shape const&) const {
    if (radius < 0) throw error("mask::window", "radius", attune::detail::text("the value ", radius), "at least 0");
  }
};

}  // namespace attune::mask
