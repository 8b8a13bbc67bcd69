// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   to[key][query] = the random number of the pair
//
// contraction::uniform, which weight gates read: the same numbers in tiles and in decode.
#pragma once

#include <algorithm>

#include <attune/exec/cpu/contraction/term.hpp>
#include <attune/exec/cpu/products/random.hpp>

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

/// The same for the rows of decode, [row][key], padded with 0 to whole batches. Lanes are groups of four neighboring
/// keys.
template <class T, class Arch>
ATTUNE_NOINLINE void draw_decode_numbers(T* to, std::uint64_t seed, decode_place const& at,
                                         key_block_place const& keys) {
  using tile = decode_tiling<T, Arch>;
  using numbers = random_numbers<T, Arch>;
  using counters = typename numbers::counters;
  using attune::detail::random_place;
  index_t const end = keys.first + keys.n;
  for (index_t r = 0; r < at.rows; ++r, to += tile::block) {
    numbers const random(seed, at.b, at.head_of(r));
    counters const position(std::uint32_t(at.query_of(r) + at.p->offset_of(at.b)));
    std::fill(to + keys.n, to + tile::whole(keys.n), T(0));
    for (index_t g = random_place::group(keys.first); g * random_place::keys < end; g += tile::lanes) {
      typename tile::batch u[random_place::keys];
      random.draw(counters::of([&](index_t l) { return g + l; }), position, u);
      alignas(64) T lane[random_place::keys][tile::lanes];
      for (int w = 0; w < int(random_place::keys); ++w) u[w].store_aligned(lane[w]);
      index_t const first = (std::max)(g * random_place::keys, keys.first),
                    last = (std::min)((g + tile::lanes) * random_place::keys, end);
      for (index_t j = first; j < last; ++j)
        to[j - keys.first] = lane[random_place::word(j)][random_place::group(j) - g];
    }
  }
}

}  // namespace attune::exec_cpu
