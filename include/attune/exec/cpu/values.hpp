// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   O^T[dv][query] *= factor[query]        O^T[dv][query] += V[key][dv] P^T[key][query]  where the query sees the key
//
// The parts of the value sum that are not a plain product. Nothing here knows a policy: compiled once per type.
#pragma once

#include <cstdint>

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

/// Adds keys [from, to) of a block, each to the lanes that see it and to no other: a weight of 0 times NaN would be NaN.
template <class T, class Arch>
ATTUNE_NOINLINE void accumulate_seen(T* sum, row_block<T> const& values, index_t width, index_t from, index_t to,
                                     T const* weights, std::uint64_t const* bits) {
  using tile = tiling<T, Arch>;
  using batch = typename tile::batch;
  for (index_t j = from; j < to; ++j)
    for (index_t d = 0; d < width; ++d)
      for (int v = 0; v < tile::vectors; ++v) {
        T* const at = sum + d * tile::queries + v * tile::lanes;
        batch const old = batch::load_aligned(at), weight = batch::load_aligned(weights + j * tile::queries + v * tile::lanes);
        batch const moved = xsimd::fma(weight, batch(values.data[j * values.step + d]), old);
        xsimd::select(lanes_of<T, Arch>(bits[j] >> (v * tile::lanes)), moved, old).store_aligned(at);
      }
}

}  // namespace attune::exec_cpu
