// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   queries of a tile, a block of keys -> one number per contraction and pair
//
// The third step of a row: the products of tile/contractions.hpp, one contraction after the other.
#pragma once

#include <algorithm>

#include <attune/exec/cpu/tile/bind.hpp>
#include <attune/exec/cpu/tile/contractions.hpp>
#include <attune/exec/cpu/tile/rotary.hpp>

namespace attune::exec_cpu {

/// Memory shared by all tiles of a thread.
template <class T, class Arch, class Op>
struct tile_block_memory {
  using types = tile_types<T, Arch, Op>;
  T* pairs;    ///< the buffers of a block
  T* rows;     ///< copies that contractions make
  T* values;   ///< copies of rows that are not contiguous
  T* gated;    ///< values after the value gate
  T* factors;  ///< factors of the tile's output gate
  tile_block_memory(arena<T>& from, problem_shape const& p)
      : pairs(from.take(types::buffers * types::pair_buffer)), rows(from.take(copied_rows(p))),
        values(from.take(types::block * p.value_width)), gated(from.take(types::block * p.value_width)),
        factors(from.take(types::queries * p.output_gate_width)) {}

 private:
  static index_t copied_rows(problem_shape const& p) {
    return [&]<class... C>(contraction::list<C...>) {
      return (std::max)({index_t(0), contractor<C, T, Arch>::rows(p)...});
    }(typename types::contractions{});
  }
};

/// Memory that lives as long as the tile: the numbers that contractions pack of its queries.
template <class T, class Arch, class Op>
index_t packed_queries(problem_shape const& p) {
  return [&]<class... C>(contraction::list<C...>) {
    return (index_t(0) + ... + contractor<C, T, Arch>::resident(p));
  }(typename Op::contractions{});
}

/// Visits each contraction with its policy and its part of the packed memory.
template <class T, class Arch, class Op, class Visit>
void each_contraction(tile_rows<T, Arch, Op> const& tile, Visit const& visit) {
  [&]<class... C, int... Index>(contraction::list<C...>, std::integer_sequence<int, Index...>) {
    [[maybe_unused]] T* own = tile.packed;
    (..., (visit(C{}, tile.op->template owner<Index>(), own), own += contractor<C, T, Arch>::resident(*tile.p)));
  }(typename Op::contractions{}, std::make_integer_sequence<int, Op::contractions::size>{});
}

template <class T, class Arch, class Op>
void pack_contractions(tile_rows<T, Arch, Op> const& tile, inputs<Op, tensor<T const>> const& in) {
  each_contraction(tile, [&](auto c, auto const& owner, T* own) {
    contractor<decltype(c), T, Arch>::pack(own, in, owner, tile.place());
  });
}

/// Stores contraction n of the block, [key][query], from memory.pairs + n * pair_buffer on.
template <class T, class Arch, class Op>
void contract_all(tile_rows<T, Arch, Op> const& tile, inputs<Op, tensor<T const>> const& in, seen_block const& s,
                  tile_block_memory<T, Arch, Op> const& memory) {
  T* pairs = memory.pairs;
  each_contraction(tile, [&](auto c, auto const& owner, T* own) {
    contractor<decltype(c), T, Arch>::run(pairs, own, in, owner, tile.place(), key_block_place{s.first, s.n},
                                          memory.rows);
    pairs += tile_types<T, Arch, Op>::pair_buffer;
  });
}

}  // namespace attune::exec_cpu
