// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   j <= i + offset
#pragma once

#include <attune/policies/mask/concepts.hpp>

namespace attune::mask {

/// Keys up to the query's own position. The offset belongs to the call (inputs::offset). By default it is Lk - Lq:
/// aligned bottom-right, so that the last query sees every key. K = clamp(i + offset + 1, 0, Lk).
struct causal {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::interval;
  constexpr bool same_for_heads() const { return true; }
  ATTUNE_HD constexpr key_interval keys(mask_row const& r) const { return {0, r.position + 1}; }
};

}  // namespace attune::mask
