// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   to[key][query] = (1 - f) rows[n][query] + f rows[n + 1][query],    n + f = index[key][query]
//
// Rows of numbers, one for each query of a tile, read at fractional indices. Each lane reads its own row, so no two
// lanes read or add to the same entry. Does not depend on the operator: compiled once.
#pragma once

#include <algorithm>

#include <attune/core/simd_math.hpp>
#include <attune/exec/cpu/products/buffer.hpp>
#include <attune/exec/cpu/products/pack.hpp>

namespace attune::exec_cpu {

/// Elements of the packed rows of a tile: [entry][query], and the last entry once more.
template <class T, class Arch>
index_t packed_rows_size(index_t entries) {
  return padded<T>((entries + 1) * tiling<T, Arch>::queries);
}
/// Packs the rows of the queries from `first` on.
template <class T, class Arch>
void pack_rows(T* packed, tensor<T const> const& x, index_t b, index_t h, index_t first, index_t lowest = 0) {
  constexpr int queries = tiling<T, Arch>::queries;
  pack_queries<queries>(packed, x, b, h, first, lowest);
  T* const end = packed + x.extents().feature * queries;
  std::copy_n(end - queries, queries, end);
}

/// Where the lanes of batch v of the queries read their rows.
template <class T, class Arch>
struct lane_entries {
  using batch = xsimd::batch<T, Arch>;
  using integer = xsimd::as_integer_t<T>;
  using integers = xsimd::batch<integer, Arch>;
  static constexpr int lanes = tiling<T, Arch>::lanes, queries = tiling<T, Arch>::queries;

  integers at;                       ///< of entry n of each lane
  batch fraction;                    ///< f; NaN where the index is NaN
  xsimd::batch_bool<T, Arch> below;  ///< the index is below 0

  /// last: P - 1.
  ATTUNE_INLINE lane_entries(batch const& index, batch const& last, int v) {
    batch const clamped = math::smaller(math::larger(batch(T(0)), index), last);  // 0 where the index is NaN
    batch const lower = math::floor(clamped);
    fraction = math::select(index == index, batch(clamped - lower), index);
    below = index < batch(T(0));
    at = simd::to_integers(batch(lower * batch(T(queries)))) + lane_numbers() + integers(integer(v * lanes));
  }
  /// The number that each lane reads, and the slope of its segment.
  ATTUNE_INLINE batch read(T const* rows, batch& slope) const {
    batch const a = simd::gathered<T, Arch>(rows, at), b = simd::gathered<T, Arch>(rows + queries, at);
    slope = math::select(below, batch(T(0)), batch(b - a));
    return between(a, b);
  }
  /// The number that each lane reads.
  ATTUNE_INLINE batch read(T const* rows) const {
    return between(simd::gathered<T, Arch>(rows, at), simd::gathered<T, Arch>(rows + queries, at));
  }

 private:
  /// At an integer the second entry is not used: it may be infinite.
  ATTUNE_INLINE batch between(batch const& a, batch const& b) const {
    return math::select(fraction == batch(T(0)), a, batch((batch(T(1)) - fraction) * a + fraction * b));
  }
  ATTUNE_INLINE static integers lane_numbers() {
    alignas(64) static constexpr auto numbers = [] {
      struct {
        integer at[integers::size];
      } table{};
      for (std::size_t l = 0; l < integers::size; ++l) table.at[l] = integer(l);
      return table;
    }();
    return integers::load_aligned(numbers.at);
  }
};

/// Reads the rows at the indices of n keys. entries: P.
template <class T, class Arch>
ATTUNE_NOINLINE void read_rows(T const* rows, index_t entries, T const* index, T* to, index_t n) {
  using tile = tiling<T, Arch>;
  using batch = typename tile::batch;
  batch const last = batch(T(entries - 1));
  for (index_t j = 0; j < n; ++j)
    for (int v = 0; v < tile::vectors; ++v) {
      index_t const here = j * tile::queries + v * tile::lanes;
      lane_entries<T, Arch>(batch::load_aligned(index + here), last, v).read(rows).store_aligned(to + here);
    }
}
/// The same, and the derivatives by the indices.
template <class T, class Arch>
ATTUNE_NOINLINE void read_rows(T const* rows, index_t entries, T const* index, T* to, T* slopes, index_t n) {
  using tile = tiling<T, Arch>;
  using batch = typename tile::batch;
  batch const last = batch(T(entries - 1));
  for (index_t j = 0; j < n; ++j)
    for (int v = 0; v < tile::vectors; ++v) {
      index_t const here = j * tile::queries + v * tile::lanes;
      batch slope;
      lane_entries<T, Arch>(batch::load_aligned(index + here), last, v).read(rows, slope).store_aligned(to + here);
      slope.store_aligned(slopes + here);
    }
}

}  // namespace attune::exec_cpu
