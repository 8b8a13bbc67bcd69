// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   a call computes the gradients of its rows through some of their keys; other calls have the other keys
//
// Calls that share the keys of a row pass each other numbers per row, in the memory of the caller.
#pragma once

#include <cstddef>
#include <span>

#include <attune/exec/cpu/row/view.hpp>
#include <attune/policies/mask/concepts.hpp>

namespace attune::exec_cpu {

/// The part of a row's gradients that a call computes. Sums of a row over keys: candidate_row_sums numbers of a
/// candidate set, or for each ordered sum the sum of the gradients by it.
template <class T>
struct gradient_part {
  key_interval keys;       ///< the keys that the call streams
  bool own_terms = true;   ///< adds what the row has once: through its divisor, v0 and the output gate
  std::span<T> ends = {};  ///< extreme logits, two numbers per row: 0 where an earlier call found the key that has it
  std::span<T const> running = {};  ///< for each ordered sum, one number per row: the sum over the keys before the part
  std::span<T> gives = {};        ///< not empty: the call computes no gradients, and adds its part of the sums to these
  std::span<T const> takes = {};  ///< not empty: the sums over all keys; otherwise the call computes its own
};
/// The numbers of a row with a candidate set in gradient_part::gives and takes.
inline constexpr int candidate_row_sums = 7;

/// The place of a row among the numbers of a call, as row_states has it.
inline std::size_t row_number(problem_shape const& p, index_t b, index_t h, index_t i) {
  return std::size_t((b * p.heads + h) * p.row_count() + i - p.first_query);
}

/// Sets numbers of a tile to 0 where the numbers of the caller are 0. x: one batch of rows per vector of the tile.
template <class T, class Arch, class Op>
void drop_spent(tile_view<T, Arch, Op> const& tile, std::span<T const> numbers, xsimd::batch<T, Arch>* x) {
  using view = tile_view<T, Arch, Op>;
  xsimd::batch<T, Arch> const zero(T(0));
  for (int v = 0; v < view::types::vectors; ++v) {
    alignas(64) T lane[view::lanes];
    for (index_t l = 0; l < view::lanes; ++l)
      lane[l] = numbers[row_number(*tile.p, tile.b, tile.h, tile.query(v * view::lanes + l))];
    x[v] = math::select(xsimd::batch<T, Arch>::load_aligned(lane) == zero, zero, x[v]);
  }
}
/// Writes numbers of the rows of a tile to the numbers of the caller.
template <class T, class Arch, class Op>
void keep_rows(tile_view<T, Arch, Op> const& tile, xsimd::batch<T, Arch> const* x, std::span<T> numbers) {
  using view = tile_view<T, Arch, Op>;
  alignas(64) T lane[view::queries];
  for (int v = 0; v < view::types::vectors; ++v) x[v].store_aligned(lane + v * view::lanes);
  for (index_t l = tile.skipped; l < tile.count; ++l)
    numbers[row_number(*tile.p, tile.b, tile.h, tile.first_query + l)] = lane[l];
}

/// Of the gradients through the lowest and the highest logit of each row: drops those that an earlier call gave to a
/// key, and keeps what is left for the next call. `ends`: gradient_part::ends.
template <class T, class Arch, class Op>
void drop_spent(tile_view<T, Arch, Op> const& tile, std::span<T> ends, xsimd::batch<T, Arch>* lowest,
                xsimd::batch<T, Arch>* highest) {
  if (ends.empty()) return;
  drop_spent(tile, std::span<T const>(ends.first(ends.size() / 2)), lowest);
  drop_spent(tile, std::span<T const>(ends.last(ends.size() / 2)), highest);
}
template <class T, class Arch, class Op>
void keep_rest(tile_view<T, Arch, Op> const& tile, std::span<T> ends, xsimd::batch<T, Arch> const* lowest,
               xsimd::batch<T, Arch> const* highest) {
  if (ends.empty()) return;
  keep_rows(tile, lowest, ends.first(ends.size() / 2));
  keep_rows(tile, highest, ends.last(ends.size() / 2));
}

}  // namespace attune::exec_cpu
