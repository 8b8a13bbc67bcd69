// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Rows of a block of keys as pairs of keys, in the layout in which a unit adds them: [pair of keys][feature], or
// [feature][pair of keys]. Groups of pairs that a unit adds together begin at multiples of their size, so no bit
// of forward() depends on where a block or a row's keys begin. Keys that a group lacks count as 0.
#pragma once

#include <algorithm>

#include <attune/exec/cpu/bf16/multiply.hpp>

namespace attune::exec_cpu {

template <class Unit, index_t Block>
struct paired_groups {
  using multiplier = pair_multiplier<Unit>;
  static constexpr index_t together = multiplier::together, keys_together = 2 * together;
  static constexpr index_t most_pairs = Block / 2 + together;  ///< of a block, in whole groups
  static_assert(Block % keys_together == 0);

  /// Elements for the pairs of a block, and for a group before it is transposed.
  static constexpr index_t size(index_t width) { return most_pairs * width; }
  static constexpr index_t room(index_t width) { return multiplier::by_feature ? together * width : 0; }

  /// Pairs the keys [from, end). row(j, n) returns the row of key j, number n of its pair; zeros for other keys.
  template <class Row>
  static void pack(number_pair* to, number_pair* group, index_t from, index_t end, index_t width, Row const& row) {
    index_t const start = group_of(from), stop = group_of(end + keys_together - 1);
    for (index_t j = start; j < stop; j += 2) {
      index_t const c = (j - start) / 2;
      number_pair* const next = multiplier::by_feature ? group + c % together * width : to + c * width;
      auto const* const first = row(j, 0);
      pair_rows(next, first, row(j + 1, 1), width);
      if constexpr (multiplier::by_feature) {
        static_assert(together == 16, "attune: a group is transposed at once");
        if (c % together == together - 1) transpose_16_rows(to + c / together * together, most_pairs, group, width);
      }
    }
  }
  /// The keys of a block from `first` on; the pairs begin with a group, `lead(first)` keys earlier.
  static paired_values from_key(number_pair const* pairs, index_t first_of_block, index_t first, index_t width) {
    index_t const before = (group_of(first) - group_of(first_of_block)) / 2;
    if constexpr (multiplier::by_feature)
      return {pairs + before, 1, most_pairs};
    else
      return {pairs + before * width, width, 1};
  }
  static constexpr index_t lead(index_t first) { return first % keys_together; }

  /// True if the pairs [from, to) contain no NaN and no infinity.
  static bool finite(paired_values const& values, index_t from, index_t to, index_t width) {
    if (from >= to) return true;
    if constexpr (multiplier::by_feature) {
      for (index_t d = 0; d < width; ++d)
        if (!finite_pairs(values.data + d * values.of_feature + from, to - from)) return false;
      return true;
    } else {
      return finite_pairs(values.data + from * width, (to - from) * width);
    }
  }

  /// Rounds the weights of the n keys from `first` on, [key][query], to pairs of keys, [pair][query]. Returns the
  /// number of pairs, in whole groups.
  template <class Arch>
  static index_t pair_weights(number_pair* to, float const* weights, index_t first, index_t n) {
    using tile = tiling<float, Arch>;
    index_t const before = lead(first), pairs = pairs_of(n + before);
    round_weights<Arch>(to, weights, before, n);
    index_t const all = (pairs + together - 1) / together * together;
    std::fill_n(to + pairs * tile::queries, (all - pairs) * tile::queries, number_pair(0));
    return all;
  }

 private:
  static constexpr index_t group_of(index_t key) { return key / keys_together * keys_together; }
  /// `before` keys before the first one have weight 0.
  template <class Arch>
  ATTUNE_NOINLINE static void round_weights(number_pair* to, float const* weights, index_t before, index_t n) {
    using tile = tiling<float, Arch>;
    using batch = typename tile::batch;
    auto const weight = [&](index_t j, int v) {
      return j < 0 || j >= n ? batch(0.0f) : batch::load_aligned(weights + j * tile::queries + v * tile::lanes);
    };
    for (index_t j = -before; j < n; j += 2, to += tile::queries)
      for (int v = 0; v < tile::vectors; ++v)
        Unit::rounded(weight(j, v), weight(j + 1, v)).store_aligned(to + v * tile::lanes);
  }
};

}  // namespace attune::exec_cpu
