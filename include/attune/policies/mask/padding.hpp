// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   j < lengths[batch]
#pragma once

#include <attune/core/error.hpp>
#include <attune/policies/mask/concepts.hpp>

namespace attune::mask {

/// Keys at or after the length of their sequence are padding and invisible. `lengths` has one entry per batch element,
/// each in [0, Lk], and must outlive the mask.
struct padding {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::interval;
  static constexpr bool checks_shape = true;
  constexpr bool same_for_heads() const { return true; }
  index_t const* lengths = nullptr;  ///< visible keys of each batch element
  index_t batch = 0;                 ///< number of entries

  padding() = default;
  /// From an array of `count` lengths, in host memory or in memory that the device can read.
  padding(index_t const* entries, index_t count) : lengths(entries), batch(count) {}
  explicit padding(std::vector<index_t>&&) = delete;  // it would dangle
  /// From a vector in host memory.
  explicit padding(std::vector<index_t> const& entries) : padding(entries.data(), index_t(entries.size())) {
    in_vector_ = true;
  }

  ATTUNE_HD constexpr key_interval keys(mask_row const& r) const { return {0, lengths[r.batch]}; }
  void(check)(mask_shape const& s) const {
    attune::detail::require_readable("mask::padding", "lengths", in_vector_, s,
                                     "an array that the device reads: padding(lengths, count)");
    if (batch != s.batch)
      throw error("mask::padding", "lengths", attune::detail::text(batch, " entries"),
                  attune::detail::text(s.batch, ", one per batch element"));
    for (index_t b = 0; b < batch && s.memory == memory_kind::host; ++b)
      if (lengths[b] < 0 || lengths[b] > s.keys)
        throw error("mask::padding", attune::detail::text("lengths[", b, "]"),
                    attune::detail::text("the value ", lengths[b]),
                    attune::detail::text("a number in [0, ", s.keys, "]"));
  }

 private:
  bool in_vector_ = false;
};

}  // namespace attune::mask
