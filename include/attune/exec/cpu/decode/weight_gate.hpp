// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   to[row][key] = the random numbers of a block of keys      lanes: groups of four neighboring keys
//
// The counterpart of tile/gates/weight_gate.hpp in the decode path, with the same numbers.
#pragma once

#include <algorithm>

#include <attune/exec/cpu/decode/contractions.hpp>
#include <attune/exec/cpu/products/random.hpp>
#include <attune/exec/weight_gate.hpp>

namespace attune::exec_cpu {

/// Which plane of pairs a weight gate's numbers have in the decode path, and how many planes there are. As in
/// tile_types.
template <class Op>
struct decode_planes {
  static constexpr bool adjusted = Op::normalizer_is.family == row_family::range_weighted;
  static constexpr int gate = (std::max)(1 + int(adjusted), Op::logit_contractions);
  static constexpr bool has_gate =
      attune::detail::reads_numbers<Op> || (Op::has_weight_gate && Op::normalizer_is.uniform_share);
  static constexpr int count = has_gate ? gate + 1 : (std::max)(1 + int(adjusted), Op::contractions::size);
};

/// Draws the numbers of a block. Padded with 0 to whole batches.
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
