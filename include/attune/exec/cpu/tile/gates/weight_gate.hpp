// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   weights of a block -> f_ij w_ij,  f_ij = factor(u_ij, j)
//
// The weight gate of a tile, between the masses and the value sum. The numbers u of a block are in the buffer
// tile_types::gate_plane: a contraction puts them there, or draw_numbers does.
#pragma once

#include <attune/exec/cpu/products/lane_bits.hpp>
#include <attune/exec/cpu/products/random.hpp>
#include <attune/exec/cpu/tile/contract.hpp>
#include <attune/exec/weight_gate.hpp>

namespace attune::exec_cpu {

/// to[key][query] = the random numbers of the keys of a block and the queries of a tile.
template <class T, class Arch>
ATTUNE_NOINLINE void draw_numbers(T* to, std::uint64_t seed, tile_place const& at, key_block_place const& block) {
  using tile = tiling<T, Arch>;
  using numbers = random_numbers<T, Arch>;
  using counters = typename numbers::counters;
  using attune::detail::random_place;
  numbers const random(seed, at.b, at.h);
  index_t const last = block.first + block.n;
  for (int v = 0; v < tile::vectors; ++v) {
    counters const positions = counters::of([&](index_t l) {
      return (std::min)(at.first + v * tile::lanes + l, at.p->whole_queries() - 1) + at.p->offset_of(at.b);
    });
    for (index_t g = random_place::group(block.first); g * random_place::keys < last; ++g) {
      typename tile::batch u[random_place::keys];
      random.draw(counters(std::uint32_t(g)), positions, u);
      index_t const j = g * random_place::keys - block.first;
      for (index_t r = 0; r < random_place::keys; ++r)
        if (j + r >= 0 && j + r < block.n) u[r].store_aligned(to + (j + r) * tile::queries + v * tile::lanes);
    }
  }
}

/// The same for the tile of an operator whose weight gate reads random numbers; else nothing.
template <class T, class Arch, class Op>
void draw_numbers([[maybe_unused]] tile_rows<T, Arch, Op> const& tile, [[maybe_unused]] T* pairs,
                  [[maybe_unused]] key_block_place const& block) {
  using types = tile_types<T, Arch, Op>;
  if constexpr (attune::detail::draws_numbers<Op>)
    draw_numbers<T, Arch>(pairs + types::gate_plane * types::pair_buffer, tile.op->weight_gate.seed, tile.place(),
                          block);
}

/// The number u at `at` of the gate's buffer, if the gate reads one.
template <class Op, class Batch, class T>
ATTUNE_INLINE Batch gate_number([[maybe_unused]] T const* at) {
  if constexpr (attune::detail::reads_numbers<Op>)
    return Batch::load_aligned(at);
  else
    return Batch(T(0));
}

/// Multiplies the weights of the keys [from, to) by their factors, in place. Masked: pairs that are not seen keep the
/// weight 0, whatever their number is. With a uniform share, the factors replace the numbers.
template <bool Masked, class T, class Arch, class Op>
ATTUNE_POINTWISE void gate_weights(tile_rows<T, Arch, Op> const& tile, T* pairs, index_t first, index_t from,
                                   index_t to, std::uint64_t const* bits) {
  using types = tile_types<T, Arch, Op>;
  using batch = typename types::batch;
  using gate = typename Op::weight_gate_policy;
  constexpr int vectors = types::vectors, lanes = types::lanes;
  constexpr index_t plane = types::pair_buffer, number = types::has_gate_plane ? types::gate_plane * plane : 0;
  if (from >= to) return;
  typename tile_rows<T, Arch, Op>::bound_lanes const f = tile.bound;
  batch const zero(T(0));
  for (index_t j = from; j < to; ++j) {
    key<batch> const k{batch(T(first + j))};
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      T* const at = pairs + j * types::queries + v * lanes;
      auto const seen = [&](batch const& x) {
        if constexpr (Masked)
          return batch(simd::select(lanes_of<T, Arch>(bits[j] >> (v * lanes)), x, zero));
        else
          return x;
      };
      batch const factor =
          attune::detail::weight_factor<gate>(f.at[v].weight_gate, gate_number<Op, batch>(at + number), k);
      seen(attune::detail::scaled_weight(batch::load_aligned(at), factor)).store_aligned(at);
      if constexpr (types::adjusted) seen(batch::load_aligned(at + plane) * factor).store_aligned(at + plane);
      if constexpr (types::traits.uniform_share) seen(factor).store_aligned(at + number);
    }
  }
}

/// Multiplies the weights of a block by the factors of the weight gate.
template <class T, class Arch, class Op>
void gate_all_weights(tile_rows<T, Arch, Op> const& tile, T* pairs, seen_block const& s, std::uint64_t const* bits) {
  draw_numbers(tile, pairs, key_block_place{s.first, s.n});
  gate_weights<true>(tile, pairs, s.first, 0, s.full_first, bits);
  gate_weights<false>(tile, pairs, s.first, s.full_first, s.full_last, bits);
  gate_weights<true>(tile, pairs, s.first, s.full_last, s.n, bits);
}

}  // namespace attune::exec_cpu
