// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   j < length  or  j <= i + offset
#pragma once

#include <attune/policies/mask/concepts.hpp>

namespace attune::mask {

/// Every query sees the prefix; after it the mask is causal (prefix language models).
struct prefix {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::interval;
  static constexpr bool checks_shape = true;
  constexpr bool same_for_heads() const { return true; }
  index_t length = 0;  ///< number of keys in the prefix, at least 0

  ATTUNE_HD constexpr key_interval keys(mask_row const& r) const {
    return {0, detail::at_least(length, r.position + 1)};
  }
  void(check)(mask_shape const&) const {
    if (length < 0) throw error("mask::prefix", "length", attune::detail::text("the value ", length), "at least 0");
  }
};

}  // namespace attune::mask
