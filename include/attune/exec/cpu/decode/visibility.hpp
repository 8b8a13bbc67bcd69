// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   word = one bit per key of a block, set where the row sees the key
//
// The keys that a single row sees, one block of keys at a time. Lanes of a batch are keys here (in tile_visibility they
// are queries).
#pragma once

#include <algorithm>
#include <cstdint>

#include <attune/policies/mask/concepts.hpp>

namespace attune::exec_cpu {

/// The n lowest bits, n in [0, 64].
constexpr std::uint64_t lowest_bits(index_t n) { return n >= 64 ? ~std::uint64_t(0) : (std::uint64_t(1) << n) - 1; }

/// The visible keys of one row from `first` on. Blocks must come in ascending order. Costs O(intervals) in total. A
/// predicate is called once for each key that a block covers, or about once for each key of its bounds.
template <class Mask>
class row_visibility {
  static constexpr bool scans = Mask::form == mask_form::predicate && !BoundsKeys<Mask>;

 public:
  row_visibility(Mask const& m, mask_row const& r, index_t first) : mask_(&m), row_(r), cursor_{first, r.keys} {
    if constexpr (!scans) cursor_ = mask::next(m, r, first);
  }

  /// No key in [from, nearest(from)) is visible; Lk if no keys are left. `from` must ascend.
  index_t nearest(index_t from) {
    if constexpr (!scans)
      while (!cursor_.empty() && cursor_.last <= from) cursor_ = mask::next(*mask_, row_, cursor_.last);
    return cursor_.empty() ? row_.keys : (std::max)(from, cursor_.first);
  }

  /// The keys of [first, first + n) that the row sees, one bit per key; n <= 64.
  std::uint64_t block(index_t first, index_t n) {
    std::uint64_t seen = 0;
    if constexpr (scans) {
      for (index_t j = 0; j < n; ++j) seen |= std::uint64_t(mask_->visible(row_, first + j) ? 1 : 0) << j;
    } else {
      index_t const last = first + n;
      nearest(first);
      while (!cursor_.empty() && cursor_.first < last) {
        seen |= lowest_bits((std::min)(cursor_.last, last) - first) &
                ~lowest_bits((std::max)(cursor_.first, first) - first);
        if (cursor_.last > last) break;
        cursor_ = mask::next(*mask_, row_, cursor_.last);
      }
    }
    return seen;
  }

 private:
  Mask const* mask_;
  mask_row row_;
  key_interval cursor_;
};

}  // namespace attune::exec_cpu
