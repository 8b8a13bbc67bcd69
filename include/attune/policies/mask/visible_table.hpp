// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   table(batch, head, i, j) != 0
#pragma once

#include <attune/core/error.hpp>
#include <attune/policies/mask/concepts.hpp>

namespace attune::mask {

/// A table of bytes, one per query and key: a boolean tensor with any strides. Extents (1 or B, 1 or H, 1 or Lq, 1 or
/// Lk). Rows are scanned, O(Lk) each. The memory must outlive the mask.
struct visible_table {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::predicate;
  static constexpr bool checks_shape = true;
  tensor<unsigned char const> table;  ///< not 0: the query sees the key

  /// Whether the table shows the key.
  ATTUNE_HD constexpr bool visible(mask_row const& r, index_t j) const {
    shape const& e = table.extents();
    return table(e.batch == 1 ? 0 : r.batch, e.head == 1 ? 0 : r.head, e.position == 1 ? 0 : r.query,
                 e.feature == 1 ? 0 : j) != 0;
  }
  constexpr bool same_for_heads() const { return table.extents().head == 1; }
  void(check)(mask_shape const& s) const {
    shape const& e = table.extents();
    auto const fits = [](index_t extent, index_t wanted) { return extent == 1 || extent == wanted; };
    if (!fits(e.batch, s.batch) || !fits(e.head, s.heads) || !fits(e.position, s.queries) || !fits(e.feature, s.keys))
      throw error(
          "mask::visible_table", "table", attune::detail::text("shape ", to_string(e)),
          attune::detail::text("(1 or ", s.batch, ", 1 or ", s.heads, ", 1 or ", s.queries, ", 1 or ", s.keys, ")"));
  }
};

}  // namespace attune::mask
