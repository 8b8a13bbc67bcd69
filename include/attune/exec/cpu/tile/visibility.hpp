// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   bits[key] = one bit per query lane of a tile, set where the lane sees the key
//
// What a tile of queries sees, block of keys by block of keys: nothing (skip it), everything (no mask at all), or some
// of it. Made from the interval form of masks, for every mask alike; O(intervals) per lane and block.
#pragma once

#include <cstdint>

#include <attune/exec/problem.hpp>

namespace attune::exec_cpu {

/// The keys that a tile of `Lanes` consecutive queries sees. Blocks are asked for in ascending order.
template <class Mask, int Lanes>
class tile_visibility {
 public:
  static_assert(Lanes <= 64);

  /// Lane l is query min(first_query + l, Lq - 1).
  tile_visibility(Mask const& m, problem_shape const& p, index_t b, index_t h, index_t first_query) : mask_(&m) {
    hull = {p.keys, 0};
    index_t widest_first = 0, narrowest_last = p.keys;
    bool one_interval = true;
    for (int l = 0; l < Lanes; ++l) {
      index_t const i = first_query + l < p.queries ? first_query + l : p.queries - 1;
      row_[l] = p.row(b, h, i);
      cursor_[l] = mask::next(m, row_[l], 0);
      index_t n = 0, last = 0;
      for (key_interval k = cursor_[l]; !k.empty(); k = mask::next(m, row_[l], k.last)) n += k.size(), last = k.last;
      count[l] = n;
      one_interval = one_interval && n == cursor_[l].size();
      if (n > 0 && cursor_[l].first < hull.first) hull.first = cursor_[l].first;
      if (last > hull.last) hull.last = last;
      widest_first = n == 0 ? p.keys : mask::detail::at_least(widest_first, cursor_[l].first);
      narrowest_last = n == 0 ? 0 : mask::detail::at_most(narrowest_last, last);
    }
    if (one_interval) common = {widest_first, narrowest_last};
  }

  index_t count[Lanes];   ///< K of each lane
  key_interval hull;      ///< no lane sees a key outside
  key_interval common{};  ///< every lane sees these; empty where lanes have several intervals

  enum class seen { none, some, all };

  /// What the lanes see of keys [first, last); fills bits[0, last - first) if that is `some`.
  seen block(index_t first, index_t last, std::uint64_t* bits) {
    if (first >= common.first && last <= common.last) return seen::all;
    bool any = false, every = true;
    for (int l = 0; l < Lanes; ++l) {
      key_interval& k = cursor_[l];
      while (!k.empty() && k.last <= first) k = mask::next(*mask_, row_[l], k.last);
      bool const touched = !k.empty() && k.first < last;
      any = any || touched;
      every = every && touched && k.first <= first && k.last >= last;
    }
    if (!any) return seen::none;
    if (every) return seen::all;
    for (index_t j = 0; j < last - first; ++j) bits[j] = 0;
    for (int l = 0; l < Lanes; ++l)  // a bit toggles where its lane starts or stops to see ...
      for (key_interval k = cursor_[l]; !k.empty() && k.first < last; k = mask::next(*mask_, row_[l], k.last)) {
        bits[mask::detail::at_least(k.first, first) - first] ^= std::uint64_t(1) << l;
        if (k.last < last) bits[k.last - first] ^= std::uint64_t(1) << l;
      }
    for (index_t j = 1; j < last - first; ++j) bits[j] ^= bits[j - 1];  // ... and holds in between
    return seen::some;
  }

 private:
  Mask const* mask_;
  mask_row row_[Lanes];
  key_interval cursor_[Lanes];
};

}  // namespace attune::exec_cpu
