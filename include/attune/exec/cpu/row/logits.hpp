// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   the contractions of a block -> logits, -inf where a query does not see a key
//
// Score, length scale and gate: the pointwise steps of a row. Every variable is a batch of rows.
#pragma once

#include <attune/exec/cpu/products/lanes.hpp>
#include <attune/exec/cpu/row/contract.hpp>
#include <attune/operators/row_state.hpp>

namespace attune::exec_cpu {

/// The running extremes of the logits of rows. `highest` and `lowest` follow the logits (`lowest` only the finite
/// ones). `poison` becomes NaN at the first logit that is NaN or +inf.
template <class T, class Arch>
struct logit_extremes {
  using batch = typename tiling<T, Arch>::batch;
  static constexpr auto vectors = std::size_t(tiling<T, Arch>::vectors);
  batch highest[vectors], lowest[vectors], poison[vectors];

  logit_extremes() {
    for (std::size_t v = 0; v < vectors; ++v) highest[v] = lowest[v] = poison[v] = batch(T(0));
  }
};

template <bool Masked, class T, class Arch, class Op>
ATTUNE_POINTWISE void logits(tile_rows<T, Arch, Op> const& tile, T* pairs, index_t first, index_t from, index_t to,
                             std::uint64_t const* bits, logit_extremes<T, Arch>& e) {
  using types = tile_types<T, Arch, Op>;
  using batch = typename types::batch;
  constexpr int vectors = types::vectors, lanes = types::lanes;
  if (from >= to) return;
  // A local copy, so the compiler knows that stores of logits do not change it.
  typename tile_rows<T, Arch, Op>::bound_lanes const f = tile.bound;
  batch top[vectors], low[vectors], poison[vectors];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) top[v] = e.highest[v], low[v] = e.lowest[v], poison[v] = e.poison[v];
  batch const off(-math::infinity<T>());
  for (index_t j = from; j < to; ++j) {
    key<batch> const k{batch(T(first + j))};
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      T* const at = pairs + j * types::queries + v * lanes;
      batch x[types::planes::count];
      ATTUNE_UNROLL_FEW
      for (int c = 0; c < types::logit_pairs; ++c) x[c] = batch::load_aligned(at + c * types::pair_buffer);
      batch a = f.at[v].logit(x, k);
      if constexpr (Masked) a = simd::select(lanes_of<T, Arch>(bits[j] >> (v * lanes)), a, off);
      if constexpr (types::traits.reference == mass_reference::running_maximum) top[v] = math::larger(top[v], a);
      if constexpr (types::adjusted) low[v] = math::select(a == off, low[v], math::smaller(low[v], a));
      if constexpr (types::traits.family == row_family::sparse_support) poison[v] = poison[v] + nan_carrier(a);
      a.store_aligned(at);
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) e.highest[v] = top[v], e.lowest[v] = low[v], e.poison[v] = poison[v];
}

/// Computes the logits, in place of the first contraction.
template <class T, class Arch, class Op>
void all_logits(tile_rows<T, Arch, Op> const& tile, T* pairs, seen_block const& s, std::uint64_t const* bits,
                logit_extremes<T, Arch>& e) {
  logits<true>(tile, pairs, s.first, 0, s.full_first, bits, e);
  logits<false>(tile, pairs, s.first, s.full_first, s.full_last, bits, e);
  logits<true>(tile, pairs, s.first, s.full_last, s.n, bits, e);
}

}  // namespace attune::exec_cpu
