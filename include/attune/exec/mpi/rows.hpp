// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   add_keys(exec, op, in, p, keys, states, ...);      states of rows += the keys [first, last)
//   finish_window(exec, op, in, p, states, out);       states -> outputs
//
// The rows of a window, part by part, on one rank. Every number is the one that accumulate() and merge() compute.
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <type_traits>
#include <utility>

#include <attune/exec/cpu/gradients/ordered_parts.hpp>
#include <attune/exec/cpu/tile/stream.hpp>
#include <attune/exec/saved.hpp>
#include <attune/exec/states.hpp>

namespace attune::exec_mpi {

/// The query heads that a call computes.
using head_choice = std::function<bool(index_t)>;
inline bool every_head(index_t) { return true; }

/// Running numbers of ordered sums before a part of the keys: for each sum one number per row; empty without them.
template <class T>
using running_sums = std::span<std::type_identity_t<T> const>;

/// stream() of the CPU executor, whose ordered sums begin with `running`.
template <class T, class Arch, class Op, class OnTile>
void stream_part(cpu<T, Arch> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in, problem_shape const& p,
                 problem_shape const& window, key_interval keys, head_choice const& runs, running_sums<T> running,
                 OnTile const& on_tile) {
  if constexpr (has_ordered_sums<Op>) {
    using tile = exec_cpu::row_tile<T, Arch, Op>;
    auto const rows = std::size_t(window.batch * window.heads * window.row_count());
    exec_cpu::stream_tiles<tile>(
        exec, p, keys, runs,
        [&](index_t b, index_t h, index_t first, auto const& memory) {
          tile t(op, in, p, b, h, first, memory);
          t.start_sums(
              [&](int n, index_t i) { return running[std::size_t(n) * rows + exec_cpu::row_number(window, b, h, i)]; });
          return t;
        },
        [&](std::vector<tile>& tiles, index_t b, index_t h, index_t first, index_t last, auto const& memory) {
          exec_cpu::gate_values<T, Arch>(op, in, p, b, h, first, last - first, memory.gated);
          exec_cpu::accumulate_block<Op>(tiles, in, in, p, b, h, first, last, keys.last, memory);
        },
        on_tile);
  } else {
    exec_cpu::stream(exec, op, in, p, keys, runs, on_tile);
  }
}

/// The states of the rows of a tile, which are rows of one head.
template <class T, class Normalizer>
struct tile_states : row_states<T, Normalizer> {
  using base = row_states<T, Normalizer>;
  index_t first;
  template <class Op>
  tile_states(Op const& op, problem_shape const& p, index_t first_row, index_t rows)
      : base(op, of_tile(p, rows)), first(first_row) {}
  index_t at(index_t, index_t, index_t i) const { return i - first; }

 private:
  static problem_shape of_tile(problem_shape p, index_t rows) {
    p.batch = p.heads = 1;
    p.first_query = 0;
    p.queries = rows;
    return p;
  }
};

/// Whether a part of the keys is the first of its rows.
enum class part_of_rows { first, next };

/// Rows of a slice: enough work for all threads, and a multiple of what tiles hold.
constexpr index_t rows_of_slice(index_t batch_and_heads) {
  constexpr index_t least = 1024, enough = 16384;
  return (std::max)(index_t(1), enough / (std::max)(index_t(1), batch_and_heads) / least) * least;
}

/// Calls f(rows of a slice) for slices of a window, from the last to the first, and pause() after each. Slices depend
/// on the extents alone, and begin where tiles begin.
template <class F, class Pause>
void in_slices(problem_shape const& p, F const& f, Pause const& pause) {
  index_t const step = rows_of_slice(p.batch * p.heads);
  for (index_t last = p.queries; last > p.first_query;) {
    index_t const first = (std::max)(p.first_query, (last - 1) / step * step);
    f(p.window({first, last}));
    pause();
    last = first;
  }
}

/// Streams the keys of `keys` through the rows of p and stores their states, or merges them with the states of earlier
/// parts. Row states may lie in the memory of the caller. pause() is called now and then, by this thread.
template <class T, class Arch, class Op, class Array, class Pause>
void add_keys(cpu<T, Arch> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in, problem_shape const& p,
              key_interval keys, row_states<T, typename Op::normalizer_policy, Array>& to, part_of_rows part,
              head_choice const& runs, running_sums<T> running, Pause const& pause) {
  using normalizer = typename Op::normalizer_policy;
  in_slices(
      p,
      [&](problem_shape const& rows) {
        stream_part(exec, op, in, rows, p, keys, runs, running, [&](auto& tile, auto const&) {
          if (part == part_of_rows::first) return tile.states(to);
          exec_cpu::tile_place const at = tile.place();
          tile_states<T, normalizer> own(op, rows, at.first, tile.rows());
          tile.states(own);
          for (index_t i = (std::max)(at.first, rows.first_query); i < at.first + tile.rows(); ++i) {
            index_t const n = to.at(at.b, at.h, i);
            auto s = to.in_place(n);
            s.template merge<normalizer>(own.in_place(own.at(at.b, at.h, i)));
            to.store_numbers(n, s);
          }
        });
      },
      pause);
}
/// The same for candidate sets.
template <class T, class Arch, class Op, class Pause>
void add_keys(cpu<T, Arch> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in, problem_shape const& p,
              key_interval keys, candidate_states<T, typename Op::normalizer_policy>& to, part_of_rows part,
              head_choice const& runs, running_sums<T>, Pause const& pause) {
  candidate_states<T, typename Op::normalizer_policy> next(op, p);
  in_slices(
      p,
      [&](problem_shape const& rows) {
        exec_cpu::stream(exec, op, in, rows, keys, runs, [&](auto& tile, auto const&) { tile.states(in, next); });
      },
      pause);
  to = part == part_of_rows::first ? std::move(next) : merge(std::move(to), next);
}

/// Divides the states of a window and writes its outputs; `out` may be the memory of the value sums.
template <class T, class Arch, class Op, class States>
void finish_window(cpu<T, Arch> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in,
                   problem_shape const& p, States const& states, outputs<Op, T> const& out, head_choice const& runs) {
  constexpr index_t rows = 64;
  exec_cpu::parallel(exec, (p.row_count() + rows - 1) / rows, [&] {
    return [&](index_t n) {
      index_t const first = p.first_query + n * rows;
      attune::detail::finish_rows<T>(op, in, p.window({first, (std::min)(first + rows, p.queries)}), states, out, runs);
    };
  });
}

/// The saved rows of a window whose states are complete.
template <class T, class Op>
saved_rows<T, Op> rows_to_save(Op const&, row_states<T, typename Op::normalizer_policy>&& states) {
  return std::move(states);
}
/// The same for candidate sets: the threshold that the candidates of all ranks agree on.
template <class T, class Op>
saved_rows<T, Op> rows_to_save(Op const& op, candidate_states<T, typename Op::normalizer_policy>&& states) {
  saved_rows<T, Op> to(op, states.extents);
  for (std::size_t n = 0; n < states.rows.size(); ++n) {
    candidate_threshold<T> const at = states.level(n);
    T sum(0);
    for (auto const& c : states.rows[n])
      sum = sum + states.normalizers[n].weight(at, c.logit, key<T>{T(double(c.key))});
    to.reference[n] = at.reference, to.level[n] = at.level, to.cut[n] = at.cut, to.last[n] = at.last;
    to.sum[n] = sum + states.poisons[n];
  }
  return to;
}

}  // namespace attune::exec_mpi
