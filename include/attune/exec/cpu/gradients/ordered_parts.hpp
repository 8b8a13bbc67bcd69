// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   sum F::map(x_ij) over the keys of a part, for each row and ordered sum
//
// An ordered sum over some of the keys begins with the sums of the parts before it.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include <attune/exec/cpu/row/ordered_sums.hpp>
#include <attune/exec/cpu/tile/stream.hpp>

namespace attune::exec_cpu {

/// Streams keys through rows for the sake of their ordered sums alone.
template <class T, class Arch, class Op>
class ordered_totals_tile {
  using types = tile_types<T, Arch, Op>;

 public:
  using batch = typename types::batch;
  static constexpr index_t queries = types::queries, block = types::block;
  using block_memory = tile_block_memory<T, Arch, Op>;
  static constexpr index_t tiles_of_task = 2 * types::shape_of::tiles;
  static constexpr bool last_keys_first = takes_later_keys_first<Op>;
  struct tile_memory {
    T* packed;
    tile_memory(arena<T>& from, problem_shape const& p) : packed(from.take(packed_queries<T, Arch, Op>::size(p))) {}
  };

  ordered_totals_tile(Op const& op, inputs<Op, tensor<T const>> const& in, problem_shape const& p, index_t b, index_t h,
                      index_t first_query, tile_memory const& memory)
      : tile_(op, {&p, b, h, first_query}, memory.packed) {
    pack_contractions(tile_, in);
  }
  key_interval hull() const { return tile_.sees.hull; }
  void accumulate(inputs<Op, tensor<T const>> const& in, index_t first, index_t last, block_memory const& memory) {
    std::uint64_t bits[types::block];
    auto const s = tile_.seen(first, last, bits);
    if (s.n == 0) return;
    contract_all(tile_, in, s, memory);
    sums_.fill(tile_, memory.pairs, s, bits);
  }
  /// Writes the totals: count_ordered numbers per row, one sum after the other.
  void give(std::span<T> to) const {
    auto const rows = to.size() / std::size_t(contraction::count_ordered<typename types::contractions>());
    sums_.give([&](int n, batch const* x) { keep_rows(tile_, x, to.subspan(std::size_t(n) * rows, rows)); });
  }

 private:
  tile_rows<T, Arch, Op> tile_;
  ordered_sums<T, Arch, Op> sums_;
};

/// The sums of the maps over the keys [keys.first, keys.last), of the rows of p. `op` is materialized.
template <class T, class Arch, class Op>
void ordered_totals(cpu<T, Arch> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in,
                    problem_shape const& p, key_interval keys, std::function<bool(index_t)> const& runs,
                    std::span<T> to) {
  using tile = ordered_totals_tile<T, Arch, Op>;
  stream_tiles<tile>(
      exec, p, keys, runs,
      [&](index_t b, index_t h, index_t first, auto const& memory) { return tile(op, in, p, b, h, first, memory); },
      [&](std::vector<tile>& tiles, index_t, index_t, index_t first, index_t last, auto const& memory) {
        for (tile& t : tiles) t.accumulate(in, first, last, memory);
      },
      [&](tile& t, auto const&) { t.give(to); });
}

}  // namespace attune::exec_cpu
