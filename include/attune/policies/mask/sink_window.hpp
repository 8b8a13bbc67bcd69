// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   (j < sinks  or  i + offset - j < width)  and  j <= i + offset
#pragma once

#include <attune/policies/mask/concepts.hpp>

namespace attune::mask {

/// The first `sinks` keys and the `width` most recent ones: StreamingLLM (Xiao et al. 2023). Causal.
struct sink_window {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::intervals;
  static constexpr bool checks_shape = true;
  constexpr bool same_for_heads() const { return true; }
  index_t sinks = 0,  ///< number of first keys, at least 0
      width = 1;      ///< number of most recent keys, the query's own position included; at least 1

  ATTUNE_HD constexpr key_interval next(mask_row const& r, index_t from) const {
    index_t const end = r.position + 1, recent = detail::minus(r.position + 1, width);
    if (recent <= sinks) return {0, end};
    if (from < sinks) return {0, sinks};
    return {recent, end};
  }
  void(check)(mask_shape const&) const {
    if (sinks < 0 || width < 1)
      throw error("mask::sink_window", "(sinks, width)", attune::detail::text("the value (", sinks, ", ", width, ")"),
                  "sinks >= 0 and width >= 1");
  }
};

}  // namespace attune::mask
