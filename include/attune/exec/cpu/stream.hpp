// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   tasks = (batch, head, block of queries);  each streams its keys and hands over its finished tiles
#pragma once

#include <memory>
#include <new>
#include <vector>

#include <attune/exec/cpu/executor.hpp>
#include <attune/exec/cpu/threads.hpp>
#include <attune/exec/cpu/tile.hpp>

namespace attune::exec_cpu {

/// Uninitialised elements on a cache line's boundary.
template <class T>
class aligned_buffer {
 public:
  explicit aligned_buffer(index_t elements)
      : data_(static_cast<T*>(::operator new(std::size_t(elements) * sizeof(T), std::align_val_t(64)))) {}
  T* data() const { return data_.get(); }

 private:
  struct release {
    void operator()(T* p) const { ::operator delete(p, std::align_val_t(64)); }
  };
  std::unique_ptr<T, release> data_;
};

/// Streams the keys in `range` through all rows; each tile ends in deliver(tile, b, h).
template <class T, class Arch, class Op, class Deliver>
void stream(cpu<T, Arch> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in, problem_shape const& p,
            key_interval range, Deliver const& deliver) {
  using tile = forward_tile<T, Arch, Op>;
  constexpr index_t task_queries = tile::shape_of::tiles * tile::queries, block = tile::shape_of::key_block;
  if (p.batch == 0 || p.heads == 0 || p.queries == 0) return;
  index_t const query_blocks = (p.queries + task_queries - 1) / task_queries;
  parallel(exec.threads, p.batch * p.heads * query_blocks, [&] {
    auto const resident = std::make_shared<aligned_buffer<T>>(tile::shape_of::tiles * tile::resident_scratch(p));
    auto const scratch = std::make_shared<aligned_buffer<T>>(tile::block_scratch(p));
    return [&, resident, scratch, tiles = std::vector<tile>()](index_t task) mutable {
      index_t const head = task / query_blocks;
      index_t const b = head / p.heads, h = head % p.heads;
      index_t const begin = (query_blocks - 1 - task % query_blocks) * task_queries;  // causal: the longest rows start first
      tiles.clear();
      tiles.reserve(std::size_t(tile::shape_of::tiles));
      key_interval hull{p.keys, 0};
      for (index_t t = 0; t < tile::shape_of::tiles && begin + t * tile::queries < p.queries; ++t) {
        auto const& made =
            tiles.emplace_back(op, in, p, b, h, begin + t * tile::queries, resident->data() + t * tile::resident_scratch(p));
        hull = {std::min(hull.first, made.sees.hull.first), std::max(hull.last, made.sees.hull.last)};
      }
      hull = {std::max(hull.first, range.first), std::min(hull.last, range.last)};
      for (index_t j = hull.first; j < hull.last; j += block)
        for (tile& t : tiles) t.absorb(in, j, std::min(j + block, hull.last), scratch->data());
      for (tile& t : tiles) deliver(t, b, h);
    };
  });
}

}  // namespace attune::exec_cpu
