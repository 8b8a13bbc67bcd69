// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   tasks = (batch, head, block of queries);  each streams its keys and passes on its finished tiles
#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

#include <attune/exec/cpu/executor.hpp>
#include <attune/exec/cpu/products/buffer.hpp>
#include <attune/exec/cpu/products/prefetch.hpp>
#include <attune/exec/cpu/threads.hpp>
#include <attune/exec/cpu/tile/candidates.hpp>
#include <attune/exec/cpu/tile/masses.hpp>
#include <attune/exec/materialized.hpp>

namespace attune::exec_cpu {

/// The tile that runs the rows of an operator.
template <class T, class Arch, class Op>
using row_tile = std::conditional_t<Op::normalizer_is.family == row_family::sparse_support, candidate_tile<T, Arch, Op>,
                                    mass_tile<T, Arch, Op>>;

/// The number of tiles of a task. Data that tiles share is read once for all tiles of a task, but threads need enough
/// tasks. No bit of a result depends on the number: blocks begin at multiples of their size, and a tile processes the
/// keys that it sees of each block.
template <class Tile>
index_t tiles_of_task(problem_shape const& p) {
  constexpr index_t most = Tile::tiles_of_task, enough = 32;
  index_t const tasks = p.batch * p.heads * ((p.row_count() + most * Tile::queries - 1) / (most * Tile::queries));
  return tasks < enough ? (most + 1) / 2 : most;
}

/// The tile takes the blocks of keys from the last to the first: its operator has sums over later keys.
template <class Tile>
inline constexpr bool last_keys_first = requires { requires Tile::last_keys_first; };

/// Streams the block of keys [first, last) through the tiles of a task. `in`: the inputs in the form that tiles read.
/// Meanwhile it prefetches the next block, up to key `end`: before each tile, a slice of every per-key tensor in
/// `stored`.
template <class Op, class View, class Tile, class In>
void accumulate_block(std::vector<Tile>& tiles, inputs<Op, View> const& stored, In const& in, problem_shape const& p,
                      index_t b, index_t h, index_t first, index_t last, index_t end,
                      typename Tile::block_memory const& memory) {
  index_t const n = index_t(tiles.size()), ahead = (std::min)(Tile::block, last_keys_first<Tile> ? first : end - last),
                next = last_keys_first<Tile> ? first - ahead : last;
  for (index_t t = 0; t < n; ++t) {
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F) && side_of(F) == input_side::key)
        prefetch_rows(member<F>(stored), b, p.group(h, p.heads_of(F)), next + ahead * t / n,
                      next + ahead * (t + 1) / n);
    });
    tiles[std::size_t(t)].accumulate(in, first, last, memory);
  }
}

/// The memory of a thread: for `together` tiles and for one block.
template <class T, class Tile>
class tile_buffers {
  using tile_memory = typename Tile::tile_memory;
  using block_memory = typename Tile::block_memory;

 public:
  tile_buffers(problem_shape const& p, index_t together)
      : p_(p), each_(arena<T>::template size_of<tile_memory>(p)), block_at_(together * each_),
        memory_(block_at_ + arena<T>::template size_of<block_memory>(p)) {
    if constexpr (block_memory::keeps) of_block().forget(p);
  }
  tile_memory of_tile(index_t n) const { return arena<T>::template in<tile_memory>(memory_.data() + n * each_, p_); }
  block_memory of_block() const { return arena<T>::template in<block_memory>(memory_.data() + block_at_, p_); }

 private:
  problem_shape const& p_;
  index_t each_, block_at_;
  aligned_buffer<T> memory_;
};

/// Where blocks of keys begin: at multiples of the block size, or at the first key that any row of a task sees.
enum class block_grid { of_keys, of_rows };

/// Makes the tiles of a task. make(first query, number of the tile) makes each tile of the queries [begin, end).
/// Returns the keys in `range` that any tile sees.
template <class Tile, class Make>
key_interval make_tiles(std::vector<Tile>& tiles, index_t begin, index_t end, key_interval range, Make const& make) {
  tiles.clear();
  tiles.reserve(std::size_t((end - begin + Tile::queries - 1) / Tile::queries));
  key_interval hull{range.last, range.first};
  for (index_t i = begin, t = 0; i < end; i += Tile::queries, ++t) {
    auto const& made = tiles.emplace_back(make(i, t));
    hull = {(std::min)(hull.first, made.hull().first), (std::max)(hull.last, made.hull().last)};
  }
  return {(std::max)(hull.first, range.first), (std::min)(hull.last, range.last)};
}

/// Calls accumulate(first, last) for every block of the keys in `hull`, from the first to the last or the other way.
template <block_grid Grid, contraction::key_order Order, index_t Block, class Accumulate>
void stream_blocks(key_interval hull, Accumulate const& accumulate) {
  index_t const start = Grid == block_grid::of_keys ? hull.first / Block * Block : hull.first;
  auto const block = [&](index_t j) { accumulate((std::max)(j, hull.first), (std::min)(j + Block, hull.last)); };
  if constexpr (Order == contraction::key_order::later) {
    if (hull.empty()) return;
    for (index_t j = start + (hull.last - 1 - start) / Block * Block; j >= start; j -= Block) block(j);
  } else {
    for (index_t j = start; j < hull.last; j += Block) block(j);
  }
}

/// Streams the rows of one task: makes its tiles, then calls accumulate(first, last) for every block of the keys in
/// `range` that any tile sees.
template <block_grid Grid, class Tile, class Make, class Accumulate>
void stream_task(std::vector<Tile>& tiles, index_t begin, index_t end, key_interval range, Make const& make,
                 Accumulate const& accumulate) {
  constexpr auto order = last_keys_first<Tile> ? contraction::key_order::later : contraction::key_order::earlier;
  stream_blocks<Grid, order, Tile::block>(make_tiles(tiles, begin, end, range, make), accumulate);
}

/// Runs tasks of up to Tile::tiles_of_task tiles each. make(b, h, first query, its memory) makes a tile.
/// accumulate(tiles, b, h, first, last, memory of a block) streams a block of keys through the tiles of a task.
/// on_tile(tile, memory of a block) receives each finished tile.
template <class Tile, class T, class Arch, class Runs, class Make, class Accumulate, class OnTile>
void stream_tiles(cpu<T, Arch> const& exec, problem_shape const& p, key_interval range, Runs const& runs,
                  Make const& make, Accumulate const& accumulate, OnTile const& on_tile) {
  if (p.batch == 0 || p.heads == 0 || p.row_count() == 0) return;
  index_t const start = p.first_query / Tile::queries * Tile::queries;  // tiles lie alike in every window
  index_t const tiles_of_rows = (p.queries - start + Tile::queries - 1) / Tile::queries;
  index_t const together = (std::min)(tiles_of_task<Tile>(p), tiles_of_rows), task_queries = together * Tile::queries;
  index_t const query_blocks = (p.queries - start + task_queries - 1) / task_queries;
  parallel(exec, p.batch * p.heads * query_blocks, [&] {
    auto const memory = std::make_shared<tile_buffers<T, Tile>>(p, together);
    return [&, memory, tiles = std::vector<Tile>()](index_t task) mutable {
      index_t const head = task / query_blocks;
      index_t const b = head / p.heads, h = head % p.heads;
      if (!runs(h)) return;
      index_t const begin =
          start + (query_blocks - 1 - task % query_blocks) * task_queries;  // causal: the longest rows start first
      stream_task<block_grid::of_keys>(
          tiles, begin, (std::min)(begin + task_queries, p.queries), range,
          [&](index_t first, index_t t) { return make(b, h, first, memory->of_tile(t)); },
          [&](index_t first, index_t last) { accumulate(tiles, b, h, first, last, memory->of_block()); });
      for (Tile& t : tiles) on_tile(t, memory->of_block());
    };
  });
}

/// Streams the keys in `range` through all rows of the heads for which runs(h) is true. on_tile(tile, memory of a
/// block) receives each finished tile. `on_tile` is no template parameter, so that forward and backward pass share the
/// code.
template <class T, class Arch, class Op>
void stream(
    cpu<T, Arch> const& exec, Op const& given, inputs<Op, tensor<T const>> const& in, problem_shape const& p,
    key_interval range, std::function<bool(index_t)> const& runs,
    std::function<void(row_tile<T, Arch, Op>&, typename row_tile<T, Arch, Op>::block_memory const&)> const& on_tile) {
  using tile = row_tile<T, Arch, Op>;
  attune::detail::materialized<Op, T> const fixed(given);
  Op const& op = fixed.op;
  stream_tiles<tile>(
      exec, p, range, runs,
      [&](index_t b, index_t h, index_t first, auto const& memory) { return tile(op, in, p, b, h, first, memory); },
      [&](std::vector<tile>& tiles, index_t b, index_t h, index_t first, index_t last, auto const& memory) {
        if constexpr (tile::traits.family != row_family::sparse_support)
          gate_values<T, Arch>(op, in, p, b, h, first, last - first, memory.gated);
        accumulate_block<Op>(tiles, in, in, p, b, h, first, last, range.last, memory);
      },
      on_tile);
}

}  // namespace attune::exec_cpu
