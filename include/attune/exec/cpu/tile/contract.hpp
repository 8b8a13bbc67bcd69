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

  /// Whether a contraction keeps numbers of a block that tiles share.
  static constexpr bool keeps = []<class... C>(contraction::list<C...>) {
    return (false || ... || contraction::Rotary<C>);
  }(typename types::contractions{});
  /// These numbers, of one contraction after the other.
  T* kept(problem_shape const& p) const { return rows + padded<T>(scratch_rows(p)); }
  /// Must be called before the first block.
  void forget(problem_shape const& p) const {
    T* next = kept(p);
    [&]<class... C>(contraction::list<C...>) {
      auto const one = [&](auto c) {
        if constexpr (contraction::Rotary<decltype(c)>)
          detail::turned_keys<T, Arch>(next).forget(), next += contractor<decltype(c), T, Arch>::kept(p);
      };
      (..., one(C{}));
    }(typename types::contractions{});
  }

 private:
  static index_t copied_rows(problem_shape const& p) {
    if constexpr (keeps)
      return padded<T>(scratch_rows(p)) + [&]<class... C>(contraction::list<C...>) {
        auto const of = [&](auto c) {
          if constexpr (contraction::Rotary<decltype(c)>)
            return contractor<decltype(c), T, Arch>::kept(p);
          else
            return index_t(0);
        };
        return (index_t(0) + ... + of(C{}));
      }(typename types::contractions{});
    else
      return scratch_rows(p);
  }
  static index_t scratch_rows(problem_shape const& p) {
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
  [[maybe_unused]] T* kept = nullptr;
  if constexpr (tile_block_memory<T, Arch, Op>::keeps) kept = memory.kept(*tile.p);
  each_contraction(tile, [&](auto c, auto const& owner, T* own) {
    using contractor_of = contractor<decltype(c), T, Arch>;
    key_block_place const block{s.first, s.n};
    if constexpr (contraction::Rotary<decltype(c)>)
      contractor_of::run(pairs, own, in, owner, tile.place(), block, kept), kept += contractor_of::kept(*tile.p);
    else
      contractor_of::run(pairs, own, in, owner, tile.place(), block, memory.rows);
    pairs += tile_types<T, Arch, Op>::pair_buffer;
  });
}

}  // namespace attune::exec_cpu
