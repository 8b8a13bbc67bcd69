// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   table[head, i / query_block, j / key_block] != 0
#pragma once

#include <attune/core/error.hpp>
#include <attune/policies/mask/concepts.hpp>

namespace attune::mask {

/// A table of blocks: rows are query blocks, columns are key blocks, and an entry is non-zero where the block is
/// visible. The last block of an axis may be short. The table has shape (heads or 1, ceil(Lq / query_block), ceil(Lk /
/// key_block)) and must outlive the mask.
struct block_sparse {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::intervals;
  static constexpr bool checks_shape = true;

  block_sparse() = default;
  /// From a vector in host memory, row-major. `query_block` and `key_block` count queries and keys; `heads` is 1 or H.
  block_sparse(std::vector<unsigned char> const& table, index_t query_block, index_t key_block, index_t heads = 1)
      : block_sparse(table.data(), index_t(table.size()), query_block, key_block, heads) {
    in_vector_ = true;
  }
  /// From an array of `entries` bytes, in host memory or in memory that the device can read.
  block_sparse(unsigned char const* table, index_t entries, index_t query_block, index_t key_block, index_t heads = 1)
      : table_(table), entries_(entries), query_block_(query_block), key_block_(key_block), heads_(heads) {}
  block_sparse(std::vector<unsigned char>&&, index_t, index_t, index_t = 1) = delete;  // it would dangle

  ATTUNE_HD constexpr key_interval next(mask_row const& r, index_t from) const {
    index_t const across = (r.keys + key_block_ - 1) / key_block_, down = (r.queries + query_block_ - 1) / query_block_;
    unsigned char const* line = table_ + ((heads_ == 1 ? 0 : r.head) * down + r.query / query_block_) * across;
    index_t b = from / key_block_;
    while (b < across && line[b] == 0) ++b;
    index_t e = b;
    while (e < across && line[e] != 0) ++e;
    return {b * key_block_, e * key_block_};
  }
  constexpr bool same_for_heads() const { return heads_ == 1; }
  void(check)(mask_shape const& s) const {
    attune::detail::require_readable(
        "mask::block_sparse", "table", in_vector_, s,
        "an array that the device reads: block_sparse(table, entries, query_block, key_block, heads)");
    if (query_block_ < 1 || key_block_ < 1)
      throw error("mask::block_sparse", "the block",
                  attune::detail::text("extents (", query_block_, ", ", key_block_, ")"), "at least (1, 1)");
    if (heads_ != 1 && heads_ != s.heads)
      throw error("mask::block_sparse", "heads", attune::detail::text("the value ", heads_),
                  attune::detail::text("1 or ", s.heads));
    index_t const need =
        heads_ * ((s.queries + query_block_ - 1) / query_block_) * ((s.keys + key_block_ - 1) / key_block_);
    if (entries_ != need)
      throw error("mask::block_sparse", "table", attune::detail::text(entries_, " entries"),
                  attune::detail::text(need, ", one per (head, query block, key block)"));
  }

 private:
  unsigned char const* table_ = nullptr;
  index_t entries_ = 0, query_block_ = 1, key_block_ = 1, heads_ = 1;
  bool in_vector_ = false;
};

}  // namespace attune::mask
