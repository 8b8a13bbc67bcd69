// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   O^T[dv][query] *= factor[query]        O^T[dv][query] += V[key][dv] P^T[key][query]  where the query sees the key
//
// The parts of the value sum that are not a plain product. Nothing here knows a policy: compiled once per type.
#pragma once

#include <cstdint>

#include <attune/core/simd_math.hpp>
#include <attune/exec/cpu/pack.hpp>
#include <attune/exec/cpu/visibility.hpp>

namespace attune::exec_cpu {

/// Scales the value sums of a tile lane by lane.
template <class T, class Arch>
ATTUNE_NOINLINE void scale_rows(T* sum, index_t width, xsimd::batch<T, Arch> const* factor) {
  using tile = tiling<T, Arch>;
  for (index_t d = 0; d < width; ++d)
    for (int v = 0; v < tile::vectors; ++v) {
      T* const at = sum + d * tile::queries + v * tile::lanes;
      (tile::batch::load_aligned(at) * factor[v]).store_aligned(at);
    }
}

/// to += factor * from, lane by lane, for value sums of a tile.
template <class T, class Arch>
ATTUNE_NOINLINE void add_scaled_rows(T* to, T const* from, index_t width, xsimd::batch<T, Arch> const* factor) {
  using tile = tiling<T, Arch>;
  for (index_t d = 0; d < width; ++d)
    for (int v = 0; v < tile::vectors; ++v) {
      index_t const at = d * tile::queries + v * tile::lanes;
      simd::multiply_add(tile::batch::load_aligned(from + at), factor[v], tile::batch::load_aligned(to + at))
          .store_aligned(to + at);
    }
}

/// True if rows [from, to) hold no NaN and no infinity.
template <class T, class Arch>
ATTUNE_NOINLINE bool finite_rows(row_block<T> const& rows, index_t width, index_t from, index_t to) {
  using batch = xsimd::batch<T, Arch>;
  constexpr index_t lanes = index_t(batch::size);
  for (index_t j = from; j < to; ++j) {
    T const* const x = rows.data + j * rows.step;
    batch worst(T(0));
    index_t d = 0;
    for (; d + lanes <= width; d += lanes) {
      batch const y = batch::load_unaligned(x + d);
      worst = worst + (y - y);  // 0 if finite, else NaN
    }
    T rest = 0;
    for (; d < width; ++d) rest += x[d] - x[d];
    if (!xsimd::all(worst == batch(T(0))) || rest != T(0)) return false;
  }
  return true;
}

/// The product of `accumulate` with unseen pairs left out instead of multiplied by 0: 0 * NaN would be NaN. Keys outside
/// [full_first, full_last) count for the lanes in their bits. The order of operations is that of `accumulate`, so that what
/// lies in an invisible value never changes a bit of any result.
template <class T, class Arch>
ATTUNE_NOINLINE void accumulate_seen(T* sum, row_block<T> const& values, index_t width, index_t n, index_t full_first,
                                     index_t full_last, T const* weights, std::uint64_t const* bits) {
  using tile = tiling<T, Arch>;
  using batch = typename tile::batch;
  for (index_t d = 0; d < width; ++d)
    for (int v = 0; v < tile::vectors; ++v) {
      batch acc(T(0));
      for (index_t j = 0; j < n; ++j) {
        batch const weight = batch::load_aligned(weights + j * tile::queries + v * tile::lanes);
        batch const moved = simd::multiply_add(batch(values.data[j * values.step + d]), weight, acc);
        bool const by_all = j >= full_first && j < full_last;
        acc = by_all ? moved : xsimd::select(lanes_of<T, Arch>(bits[j] >> (v * tile::lanes)), moved, acc);
      }
      T* const at = sum + d * tile::queries + v * tile::lanes;
      (tile::batch::load_aligned(at) + acc).store_aligned(at);
    }
}

/// sum[dv][query] += the values that the query sees: one sum for all lanes where all see them, else lane by lane.
template <class T, class Arch>
ATTUNE_NOINLINE void add_plain(T* sum, row_block<T> const& values, index_t width, index_t n, index_t full_first,
                               index_t full_last, std::uint64_t const* bits) {
  using tile = tiling<T, Arch>;
  using batch = typename tile::batch;
  alignas(64) T common[tile::lanes];
  for (index_t d0 = 0; d0 < width; d0 += tile::lanes) {
    index_t const some = width - d0 < tile::lanes ? width - d0 : tile::lanes;
    batch all(T(0));
    if (some == tile::lanes)
      for (index_t j = full_first; j < full_last; ++j) all = all + batch::load_unaligned(values.data + j * values.step + d0);
    all.store_aligned(common);
    if (some < tile::lanes)
      for (index_t j = full_first; j < full_last; ++j)
        for (index_t d = 0; d < some; ++d) common[d] += values.data[j * values.step + d0 + d];
    for (index_t d = d0; d < d0 + some; ++d)
      for (int v = 0; v < tile::vectors; ++v) {
        batch acc(common[d - d0]);
        auto const seen = [&](index_t from, index_t to) {
          for (index_t j = from; j < to; ++j)
            acc = xsimd::select(lanes_of<T, Arch>(bits[j] >> (v * tile::lanes)),
                                batch(acc + batch(values.data[j * values.step + d])), acc);
        };
        seen(0, full_first);
        seen(full_last, n);
        T* const at = sum + d * tile::queries + v * tile::lanes;
        (batch::load_aligned(at) + acc).store_aligned(at);
      }
  }
}

}  // namespace attune::exec_cpu
