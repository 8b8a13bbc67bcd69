// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   i + offset - before <= j <= i + offset + after
#pragma once

#include <attune/policies/mask/concepts.hpp>

namespace attune::mask {

/// Keys from `before` positions before the query to `after` positions after it: the windows of flash-attention. The
/// largest index_t means no limit. `from_start` takes the query's index i for its position, whatever the offset of the
/// call: band{no_limit, 0, true} is the causal mask that aligns the first query with the first key.
struct band {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::interval;
  static constexpr bool checks_shape = true;
  constexpr bool same_for_heads() const { return true; }
  /// A width without limit.
  static constexpr index_t no_limit = detail::highest_index;
  index_t before = no_limit,  ///< positions before the query, at least 0
      after = no_limit;       ///< positions after the query, at least 0
  bool from_start = false;    ///< count from the first query and the first key

  ATTUNE_HD constexpr key_interval keys(mask_row const& r) const {
    index_t const at = from_start ? r.query : r.position;
    return {detail::minus(at, before), after == no_limit ? r.keys : detail::plus(at + 1, after)};
  }
  void(check)(mask_shape const&) const {
    if (before < 0 || after < 0)
      throw error("mask::band", "(before, after)", attune::detail::text("the value (", before, ", ", after, ")"),
                  "two numbers of at least 0");
  }
};

}  // namespace attune::mask
