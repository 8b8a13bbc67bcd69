// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   a mask::runtime, and what it would be had the queries stood elsewhere
//
// A mask in arrays knows queries, not positions: by itself it cannot say what a kernel sees that aligns it wrongly,
// which is what a verdict asks. So the wrong alignments that it asks for are arrays too.
#pragma once

#include <attune/policies/mask/runtime.hpp>

namespace attune::tool {

struct aligned_mask {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::intervals;
  static constexpr bool checks_shape = true;

  /// The mask where all queries stand `by` keys later, or query 0 stands at key 0.
  struct shifted {
    index_t by = 0;
    bool top_left = false;
    mask::runtime view;
  };

  mask::runtime right;
  index_t offset = 0;                ///< position of query 0 among the keys
  index_t const* offsets = nullptr;  ///< instead of it, for each batch element
  shifted const* others = nullptr;
  int count = 0;

  key_interval next(mask_row const& r, index_t from) const {
    index_t const by = r.position - r.query - (offsets == nullptr ? offset : offsets[r.batch]);
    for (int n = 0; n < count && by != 0; ++n)
      if (others[n].top_left ? r.position == r.query : others[n].by == by) return others[n].view.next(r, from);
    return right.next(r, from);
  }
  void check(mask_shape const& s) const { right.check(s); }
};

}  // namespace attune::tool
