// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// statistics() of the CPU executor. Tasks = (batch, head, a chunk of queries). A task sums its own columns. These are
// then added in the order of the tasks, so no sum depends on which thread ran which task, or when.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include <attune/calls/statistics.hpp>
#include <attune/exec/cpu/executor.hpp>
#include <attune/exec/cpu/products/buffer.hpp>
#include <attune/exec/cpu/threads.hpp>
#include <attune/exec/cpu/tile/statistics_tile.hpp>
#include <attune/exec/cpu/tile/stream.hpp>

namespace attune {

namespace exec_cpu {

/// The statistics of the rows of p over some of the keys. Returns the column sums (B, H, keys) if they are requested.
/// `op` has its tables packed. All arguments are already checked.
template <class T, class Arch, class Op>
std::vector<double> statistics_of_part(cpu<T, Arch> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in,
                                       problem_shape const& p, saved_rows<T, Op> const& saved,
                                       statistics_request const& request, key_interval keys, row_statistics<T>& to) {
  using tile = statistics_tile<T, Arch, Op>;
  index_t const heads = p.batch * p.heads, queries = p.row_count();
  if (heads == 0 || queries == 0) return std::vector<double>(std::size_t(request.columns ? heads * keys.size() : 0));

  // Chunks depend on the shape alone.
  constexpr index_t together = tile::tiles_of_task * tile::queries;
  index_t const groups = (queries + together - 1) / together, most = (std::max)(index_t(1), 64 / heads);
  index_t const chunk = (request.columns ? (groups + most - 1) / most : 1) * together;
  index_t const chunks = (queries + chunk - 1) / chunk, columns_of_task = request.columns ? keys.size() : 0;
  std::vector<double> columns(std::size_t(heads * chunks * columns_of_task), 0.0);
  statistics_call<T, Op> const call{op, in, p, saved, request};
  parallel(exec, heads * chunks, [&] {
    auto const memory = std::make_shared<tile_buffers<T, tile>>(p, tile::tiles_of_task);
    return [&, memory, tiles = std::vector<tile>()](index_t n) mutable {
      index_t const head = n / chunks, place = chunks - 1 - n % chunks;  // causal: the longest rows start first
      double* const own =
          request.columns ? columns.data() + (head * chunks + place) * columns_of_task - keys.first : nullptr;
      index_t const end = p.first_query + (std::min)((place + 1) * chunk, queries);
      for (index_t begin = p.first_query + place * chunk; begin < end; begin += together) {
        stream_task<block_grid::of_rows>(
            tiles, begin, (std::min)(begin + together, end), keys,
            [&](index_t first, index_t t) {
              return tile(call, head / p.heads, head % p.heads, first, memory->of_tile(t));
            },
            [&](index_t first, index_t last) {
              for (tile& t : tiles) t.accumulate(first, last, memory->of_block(), own);
            });
        for (tile const& t : tiles) t.finish(to);
      }
    };
  });
  std::vector<double> sums(std::size_t(heads * columns_of_task), 0.0);
  for (index_t head = 0; head < heads; ++head)
    for (index_t c = 0; c < chunks; ++c)
      for (index_t j = 0; j < columns_of_task; ++j)
        sums[std::size_t(head * columns_of_task + j)] +=
            columns[std::size_t((head * chunks + c) * columns_of_task + j)];
  return sums;
}

/// All statistics of a call over some of the keys.
template <class T, class Arch, class Op>
void statistics_of_rows(engine, cpu<T, Arch> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in,
                        problem_shape const& p, saved_rows<T, Op> const& saved, statistics_request const& request,
                        key_interval keys, row_statistics<T>& to) {
  attune::detail::with_packed_tables<Op, T> const fixed(op);
  std::vector<double> const columns = statistics_of_part(exec, fixed.op, in, p, saved, request, keys, to);
  for (index_t n = 0; n < index_t(columns.size()); ++n)
    to.columns[std::size_t(n / keys.size() * p.keys + keys.first + n % keys.size())] = T(columns[std::size_t(n)]);
}

}  // namespace exec_cpu
}  // namespace attune
