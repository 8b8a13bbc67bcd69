// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   tasks = (batch, heads that share their keys, chunk of keys)
//
// decode() of cpu<float> and cpu<double>: forward() for few queries. At Lq = 1 a tile of queries would use only one of
// its lanes. Here every byte of K and V is read once for all query heads that share it. The keys are split over tasks,
// so that few heads keep many threads busy.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <utility>
#include <vector>

#include <attune/calls/decode.hpp>
#include <attune/exec/cpu/decode/rows.hpp>
#include <attune/exec/cpu/executor.hpp>
#include <attune/exec/cpu/threads.hpp>
#include <attune/exec/materialized.hpp>

namespace attune::exec_cpu {

/// How a call is split into tasks. Depends on the extents of a batch element alone: results depend neither on threads
/// nor on the batch.
struct decode_plan {
  static constexpr index_t most_rows = 64;  ///< rows per task
  /// Splits the keys until a batch element has `tasks` tasks, but into chunks of at least `keys` keys.
  struct grain {
    index_t tasks, keys;
  };
  static constexpr grain coarse{64, 2048}, fine{16, 1024};  ///< a chunk costs as much as 50 to 100 keys

  index_t heads;        ///< query heads that share their keys and values
  index_t head_groups;  ///< groups per batch element
  index_t row_blocks;   ///< blocks of rows per group
  index_t chunk, chunks;

  /// `key_heads`: the numbers of heads of all inputs with a row of features per key.
  ATTUNE_NOINLINE decode_plan(problem_shape const& p, std::initializer_list<index_t> key_heads, index_t block) {
    heads = p.heads / p.value_heads;
    for (index_t n : key_heads) heads = std::gcd(heads, p.heads / n);
    head_groups = p.heads / heads;
    row_blocks = (heads * p.queries + most_rows - 1) / most_rows;
    index_t const units = head_groups * row_blocks;  // of a batch element
    auto const chunks_of = [&](grain const& g) { return (std::min)((g.tasks + units - 1) / units, p.keys / g.keys); };
    index_t const wanted = (std::max)({index_t(1), chunks_of(coarse), chunks_of(fine)});
    chunk = (std::max)(block, ((p.keys + wanted - 1) / wanted + block - 1) / block * block);
    chunks = (std::max)(index_t(1), (p.keys + chunk - 1) / chunk);
  }
  index_t tasks(problem_shape const& p) const { return p.batch * head_groups * row_blocks * chunks; }
  /// The rows of block n, which are the same in all chunks.
  decode_place place(problem_shape const& p, index_t n) const {
    index_t const group = n / row_blocks, first = n % row_blocks * most_rows;
    return {&p, group / head_groups, group % head_groups * heads, first,
            (std::min)(heads * p.queries - first, most_rows)};
  }
};

/// K of each row, counted once for all chunks: some masks count key by key.
template <class Mask>
ATTUNE_NOINLINE std::vector<index_t> visible_counts(Mask const& m, problem_shape const& p) {
  std::vector<index_t> counts;
  counts.reserve(std::size_t(p.batch * p.heads * p.queries));
  for (index_t b = 0; b < p.batch; ++b)
    for (index_t h = 0; h < p.heads; ++h)
      for (index_t i = 0; i < p.queries; ++i) counts.push_back(mask::count(m, p.row(b, h, i)));
  return counts;
}

/// The states of the rows of an operator over the keys of `range`. `op` is materialized. Memory: the states of
/// B H Lq rows per chunk of keys, at most decode_plan::coarse.tasks chunks.
template <class Products = float_products, class T, class Arch, class Op, class Source>
auto decode_states(cpu<T, Arch> const& exec, Op const& op, Source const& keys, problem_shape const& p,
                   key_interval range) {
  using rows = decode_worker<T, Arch, Op, Source, Products>;
  using sums = typename rows::sums;
  problem_shape split = p;
  split.keys = range.size();
  decode_plan const plan = [&]<class... C>(contraction::list<C...>) {
    return decode_plan(split, {decode_contractor<C, T, Arch>::heads(p)...}, rows::block);
  }(typename Op::contractions{});

  auto const visible = visible_counts(op.mask, p);
  auto parts = empty_parts<T, sums>(plan.chunks, p);
  parallel(exec, plan.tasks(p), [&] {
    return [&, worker = rows(op, keys, p, (std::min)(plan.heads * p.queries, index_t(decode_plan::most_rows)))](
               index_t task) mutable {
      index_t const c = task % plan.chunks;
      decode_place const at = plan.place(p, task / plan.chunks);
      auto& to = parts[std::size_t(c)];
      worker.run(at, visible.data() + to.at(at.b, at.head, 0) + at.first,
                 {range.first + c * plan.chunk, (std::min)(range.first + (c + 1) * plan.chunk, range.last)}, to);
    };
  });
  merge_parts(parts);
  return std::move(parts.front());
}

/// Evaluates an operator. keys: a source of decode/key_sources.hpp.
template <class Products = float_products, class T, class Arch, class Op, class Source>
void decode_from(cpu<T, Arch> const& exec, Op const& given, Source const& keys, problem_shape const& p,
                 outputs<Op, T> const& out) {
  if (p.batch == 0 || p.heads == 0 || p.queries == 0) return;
  attune::detail::materialized<Op, T> const fixed(given);
  auto const states = decode_states<Products>(exec, fixed.op, keys, p, {0, p.keys});
  attune::detail::finish_rows(fixed.op, keys.resident(), p, states, out);
}

/// The key source of a cache.
template <class Op, class T>
contiguous_keys<Op, T> keys_of(attune::detail::whole_cache<Op, tensor<T const>> const& cache) {
  return contiguous_keys<Op, T>(cache.in);
}
template <class Op, class T>
paged_keys<Op, T> keys_of(attune::detail::paged_cache<Op, tensor<T const>> const& cache) {
  return paged_keys<Op, T>(cache.in, cache.one_piece, cache.pages);
}

template <class T, class Arch, class Op, class Cache>
  requires(!storage_only<T>)
void decode_rows(engine, cpu<T, Arch> const& exec, Op const& op, Cache const& cache, problem_shape const& p,
                 outputs<Op, T> const& out) {
  decode_from(exec, op, keys_of(cache), p, out);
}

}  // namespace attune::exec_cpu
