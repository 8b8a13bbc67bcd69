// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   query_document[batch, i] == key_document[batch, j]
#pragma once

#include <algorithm>

#include <attune/core/error.hpp>
#include <attune/policies/mask/concepts.hpp>

namespace attune::mask {

/// Queries see the keys of the same document: packed sequences, varlen batches, segments. Ids need not be sorted, but
/// contiguous documents are the fast case (one interval per row). The arrays have shape (batch or 1, Lq) and (batch or
/// 1, Lk) and must outlive the mask.
struct documents {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::predicate;
  static constexpr bool checks_shape = true;
  constexpr bool same_for_heads() const { return true; }

  documents() = default;
  /// From vectors in host memory; `batch` is 1 or B, and the batch elements follow one another.
  documents(std::vector<index_t> const& of_queries, std::vector<index_t> const& of_keys, index_t batch = 1)
      : documents(of_queries.data(), index_t(of_queries.size()), of_keys.data(), index_t(of_keys.size()), batch) {
    in_vectors_ = true;
  }
  /// From arrays of ids, in host memory or in memory that the device can read. `queries` and `keys` are the total
  /// numbers of entries; the batch elements follow one another.
  documents(index_t const* of_queries, index_t queries, index_t const* of_keys, index_t keys, index_t batch = 1)
      : query_(of_queries), key_(of_keys), queries_(queries), keys_(keys), batch_(batch) {}
  documents(std::vector<index_t>&&, std::vector<index_t> const&, index_t = 1) = delete;  // they would dangle
  documents(std::vector<index_t> const&, std::vector<index_t>&&, index_t = 1) = delete;
  explicit documents(std::vector<index_t>&&, index_t = 1) = delete;
  /// Self-attention: one id per position.
  explicit documents(std::vector<index_t> const& ids, index_t batch = 1) : documents(ids, ids, batch) {}

  /// Whether query and key have the same document.
  ATTUNE_HD constexpr bool visible(mask_row const& r, index_t j) const {
    index_t const b = batch_ == 1 ? 0 : r.batch;
    return query_[b * r.queries + r.query] == key_[b * r.keys + j];
  }
  /// The keys that a query sees if ids ascend: one interval. O(log Lk). For operators on a line (attune/line.hpp).
  key_interval interval_of(mask_row const& r) const {
    index_t const b = batch_ == 1 ? 0 : r.batch;
    index_t const* const keys = key_ + b * r.keys;
    auto const run = std::equal_range(keys, keys + r.keys, query_[b * r.queries + r.query]);
    return {run.first - keys, run.second - keys};
  }
  /// Throws attune::error unless the ids of each batch element ascend.
  void check_order(char const* function, mask_shape const& s) const {
    auto const fits = [&](char const* of, index_t const* ids, index_t count) {
      for (index_t n = 1; n < batch_ * count; ++n)
        if (n % count != 0 && ids[n] < ids[n - 1])
          throw error(function, attune::detail::text("mask::documents of ", of),
                      attune::detail::text("id ", ids[n], " after ", ids[n - 1], " at position ", n % count),
                      "ids that ascend: the keys that a query sees are one interval here");
    };
    fits("queries", query_, s.queries);
    fits("keys", key_, s.keys);
  }
  void(check)(mask_shape const& s) const {
    attune::detail::require_readable(
        "mask::documents", "the array of ids", in_vectors_, s,
        "an array that the device reads: documents(of_queries, queries, of_keys, keys, batch)");
    if (batch_ != 1 && batch_ != s.batch)
      throw error("mask::documents", "batch", attune::detail::text("the value ", batch_),
                  attune::detail::text("1 or ", s.batch));
    if (queries_ != batch_ * s.queries || keys_ != batch_ * s.keys)
      throw error("mask::documents", "the array of ids",
                  attune::detail::text(queries_, " query and ", keys_, " key entries"),
                  attune::detail::text(batch_ * s.queries, " and ", batch_ * s.keys));
  }

 private:
  index_t const* query_ = nullptr;
  index_t const* key_ = nullptr;
  index_t queries_ = 0, keys_ = 0, batch_ = 1;
  bool in_vectors_ = false;
};

}  // namespace attune::mask
