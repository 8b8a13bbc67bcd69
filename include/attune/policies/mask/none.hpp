// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   every key is visible
#pragma once

#include <attune/policies/mask/concepts.hpp>

namespace attune::mask {

/// Every key is visible: K = Lk.
struct none {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::interval;
  constexpr bool same_for_heads() const { return true; }
  ATTUNE_HD constexpr key_interval keys(mask_row const& r) const { return {0, r.keys}; }
};

}  // namespace attune::mask
