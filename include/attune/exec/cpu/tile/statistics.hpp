// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   rows = forward_and_save(cpu{}, op, in, {.out = O});
//       s = statistics(cpu{}, op, in, rows, {.columns = true, .above = 0.1})
//
// Tasks = (batch, head, a chunk of queries). A task sums its own columns. These are then added in the order of the
// tasks, so no sum depends on which thread ran which task, or when.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include <attune/exec/cpu/executor.hpp>
#include <attune/exec/cpu/products/buffer.hpp>
#include <attune/exec/cpu/threads.hpp>
#include <attune/exec/cpu/tile/statistics_tile.hpp>
#include <attune/exec/cpu/tile/stream.hpp>

namespace attune {

/// Statistics of logits and weights (exec/statistics.hpp). Fused: nothing of size Lq x Lk exists. `saved` is the result
/// of forward_and_save for the same operator and inputs. Merged states of an operator with an O(1) state work too.
/// `keys` restricts rows and columns to the keys [first, last), with the weights that they have among all keys. `merge`
/// combines such parts.
/// Degenerate rows: exec/statistics.hpp.
/// Errors:      attune::error names the argument, the value and the expectation.
/// Complexity:  the score products of forward(), no products with values; memory for the result, and with columns Lk
///              numbers per task, of which there are at most 64 or one per head.
/// Determinism: bitwise the same for any number of threads.
template <class T, class Arch, class Op>
row_statistics<T> statistics(cpu<T, Arch> exec, Op const& op, inputs<Op, tensor<T const>> const& in,
                             saved_rows<T, Op> const& saved, statistics_request const& request, key_interval keys) {
  using tile = exec_cpu::statistics_tile<T, Arch, Op>;
  problem_shape const p = detail::checked_statistics<T>(op, in, saved, request, keys);
  row_statistics<T> to(p, request);
  index_t const heads = p.batch * p.heads;
  if (heads == 0 || p.queries == 0) return to;

  // Chunks depend on the shape alone.
  constexpr index_t together = tile::tiles_of_task * tile::queries;
  index_t const groups = (p.queries + together - 1) / together, most = (std::max)(index_t(1), 64 / heads);
  index_t const chunk = (request.columns ? (groups + most - 1) / most : 1) * together;
  index_t const chunks = (p.queries + chunk - 1) / chunk;
  std::vector<double> columns(std::size_t(request.columns ? heads * chunks * p.keys : 0), 0.0);
  detail::with_packed_tables<Op, T> const fixed(op);
  exec_cpu::statistics_call<T, Op> const call{fixed.op, in, p, saved, request};
  exec_cpu::parallel(exec, heads * chunks, [&] {
    auto const memory = std::make_shared<exec_cpu::tile_buffers<T, tile>>(p, tile::tiles_of_task);
    return [&, memory, tiles = std::vector<tile>()](index_t n) mutable {
      index_t const head = n / chunks, place = chunks - 1 - n % chunks;  // causal: the longest rows start first
      double* const own = request.columns ? columns.data() + (head * chunks + place) * p.keys : nullptr;
      index_t const end = (std::min)((place + 1) * chunk, p.queries);
      for (index_t begin = place * chunk; begin < end; begin += together) {
        exec_cpu::stream_task<exec_cpu::block_grid::of_rows>(
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
  if (request.columns)
    for (index_t head = 0; head < heads; ++head)
      for (index_t j = 0; j < p.keys; ++j) {
        double sum = 0;
        for (index_t c = 0; c < chunks; ++c) sum += columns[std::size_t((head * chunks + c) * p.keys + j)];
        to.columns[std::size_t(head * p.keys + j)] = T(sum);
      }
  return to;
}

/// The same over all keys.
template <class T, class Arch, class Op>
row_statistics<T> statistics(cpu<T, Arch> exec, Op const& op, inputs<Op, tensor<T const>> const& in,
                             saved_rows<T, Op> const& saved, statistics_request const& request = {}) {
  return statistics(exec, op, in, saved, request, {0, in.v.extents().position});
}

}  // namespace attune
