// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   add_keys, part_of_rows, merge_rows, finish_window   states of rows -> outputs
//   ordered_totals                                      ordered sums of a part of the keys, for the parts behind it
//   gradients_of_rows, add_rows                         gradients
//   statistics_of_part                                  statistics of rows; column sums
//   decode_part                                         states of the rows of decode()
//   fold_terms, spread_terms, query_run                 folds
//
// The functions and types of this folder for calls over ranks. The test meta.layers refuses other names. A part of
// a call: the rows of a window (problem_shape::window) and some of their keys. Positions are positions of the whole
// problem. Operators are materialized. `runs`: the query heads that the call computes. pause() is called now and then,
// by this thread. A user's policy, or the user's threads, may throw in each of these functions.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <attune/exec/cpu/composite.hpp>
#include <attune/exec/cpu/decode/decode.hpp>
#include <attune/exec/cpu/gradients/backward.hpp>
#include <attune/exec/cpu/gradients/ordered_parts.hpp>
#include <attune/exec/cpu/tile/statistics.hpp>
#include <attune/exec/cpu/tile/stream.hpp>
#include <attune/exec/saved.hpp>
#include <attune/exec/states.hpp>

namespace attune::exec_cpu {

using attune::detail::heads_served;

/// Running numbers of ordered sums before a part of the keys: for each sum one number per row; empty without them.
template <class T>
using running_sums = std::span<std::type_identity_t<T> const>;

/// stream(), whose ordered sums begin with `running`.
template <class T, class Arch, class Op, class OnTile>
void stream_part(cpu<T, Arch> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in, problem_shape const& p,
                 problem_shape const& window, key_interval keys, heads_served runs, running_sums<T> running,
                 OnTile const& on_tile) {
  if constexpr (has_ordered_sums<Op>) {
    using tile = row_tile<T, Arch, Op>;
    auto const rows = std::size_t(window.batch * window.heads * window.row_count());
    stream_tiles<tile>(
        exec, p, keys, runs,
        [&](index_t b, index_t h, index_t first, auto const& memory) {
          tile t(op, in, p, b, h, first, memory);
          t.start_sums([&](int n, index_t i) { return running[std::size_t(n) * rows + row_number(window, b, h, i)]; });
          return t;
        },
        [&](std::vector<tile>& tiles, index_t b, index_t h, index_t first, index_t last, auto const& memory) {
          gate_values<T, Arch>(op, in, p, b, h, first, last - first, memory.gated);
          accumulate_block<Op>(tiles, in, in, p, b, h, first, last, keys.last, memory);
        },
        on_tile);
  } else {
    stream(exec, op, in, p, keys, runs, on_tile);
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

/// Merges the states of row n of a later part.
template <class Normalizer, class States, class Part>
void merge_row(States& to, index_t n, Part& part, index_t from) {
  auto s = to.in_place(n);
  s.template merge<Normalizer>(part.in_place(from));
  to.store_numbers(n, s);
}

/// Streams the keys of `keys` through the rows of p and stores their states, or merges them with the states of earlier
/// parts. Row states may lie in the memory of the caller. Every number is the one of accumulate() and merge().
template <class T, class Arch, class Op, class Array, class Pause>
void add_keys(cpu<T, Arch> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in, problem_shape const& p,
              key_interval keys, row_states<T, typename Op::normalizer_policy, Array>& to, part_of_rows part,
              heads_served runs, running_sums<T> running, Pause const& pause) {
  using normalizer = typename Op::normalizer_policy;
  in_slices(
      p,
      [&](problem_shape const& rows) {
        stream_part(exec, op, in, rows, p, keys, runs, running, [&](auto& tile, auto const&) {
          if (part == part_of_rows::first) return tile.states(to);
          tile_place const at = tile.place();
          tile_states<T, normalizer> own(op, rows, at.first, tile.rows());
          tile.states(own);
          for (index_t i = (std::max)(at.first, rows.first_query); i < at.first + tile.rows(); ++i)
            merge_row<normalizer>(to, to.at(at.b, at.h, i), own, own.at(at.b, at.h, i));
        });
      },
      pause);
}
/// The same for candidate sets.
template <class T, class Arch, class Op, class Pause>
void add_keys(cpu<T, Arch> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in, problem_shape const& p,
              key_interval keys, candidate_states<T, typename Op::normalizer_policy>& to, part_of_rows part,
              heads_served runs, running_sums<T>, Pause const& pause) {
  candidate_states<T, typename Op::normalizer_policy> next(op, p);
  in_slices(
      p,
      [&](problem_shape const& rows) {
        stream(exec, op, in, rows, keys, runs, [&](auto& tile, auto const&) { tile.states(in, next); });
      },
      pause);
  to = part == part_of_rows::first ? std::move(next) : merge(std::move(to), next);
}

/// Merges the states of all rows of a window with the states of a later part.
template <class Op, class T, class Arch, class States, class Part>
void merge_rows(cpu<T, Arch> const& exec, States& to, Part& part) {
  index_t const rows = index_t(part.reference.size()), at_once = 256;
  parallel(exec, (rows + at_once - 1) / at_once, [&] {
    return [&](index_t task) {
      for (index_t n = task * at_once; n < (std::min)(rows, (task + 1) * at_once); ++n)
        merge_row<typename Op::normalizer_policy>(to, n, part, n);
    };
  });
}

/// Divides the states of a window and writes its outputs; `out` may be the memory of the value sums.
template <class T, class Arch, class Op, class States>
void finish_window(cpu<T, Arch> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in,
                   problem_shape const& p, States const& states, outputs<Op, T> const& out, heads_served runs) {
  constexpr index_t rows = 64;
  parallel(exec, (p.row_count() + rows - 1) / rows, [&] {
    return [&](index_t n) {
      index_t const first = p.first_query + n * rows;
      attune::detail::finish_rows<T>(op, in, p.window({first, (std::min)(first + rows, p.queries)}), states, out, runs);
    };
  });
}

/// The gradients of the rows of a window, through one part of their keys after another. The arguments of the
/// constructor live longer.
template <class T, class Arch, class Op>
class gradients_of_rows {
 public:
  using inputs_type = inputs<Op, tensor<T const>>;
  /// The gradients need sums over all keys of a row: all parts pass add_sums(), then all pass add().
  static constexpr bool two_rounds = Op::has_threshold || Op::contractions::has_derived;

  gradients_of_rows(cpu<T, Arch> const& exec, Op const& op, problem_shape const& p, saved_rows<T, Op> const& saved,
                    cotangents<Op, tensor<T const>> const& d, heads_served runs)
      : exec_(exec), op_(op), p_(p), saved_(attune::detail::view_of<T, Op>(saved)), d_(d), runs_(runs) {
    auto const rows = std::size_t(p.batch * p.heads * p.row_count());
    if (Op::normalizer_is.family != row_family::masses) ends_.assign(2 * rows, T(1));
    if (Op::has_threshold) sums_.assign(candidate_row_sums * rows, T(0));
  }

  /// Adds a part of the keys to the sums. running: the ordered sums before the part; grown: gets the gradients by the
  /// ordered sums, through this part alone. Both have one number per sum and row, and are empty without ordered sums.
  void add_sums(inputs_type const& in, key_interval keys, running_sums<T> running, std::span<T> grown) {
    std::optional<shared_sums> unused;
    add_gradients_of_part(exec_, op_, in, p_, saved_, d_,
                          {.keys = keys, .running = running, .gives = Op::has_threshold ? std::span(sums_) : grown}, {},
                          unused, runs_);
  }
  /// Adds the gradients through a part of the keys to `to`, which has none by other keys, and to total(). grown: the
  /// sums of what add_sums() gave for the parts that come later in the order of the sums.
  void add(inputs_type const& in, key_interval keys, running_sums<T> running, running_sums<T> grown,
           attune::detail::gradient_views<T> const& to) {
    running_sums<T> const sums = Op::has_threshold ? running_sums<T>(sums_) : grown;
    add_gradients_of_part(exec_, op_, in, p_, saved_, d_,
                          {.keys = keys, .own_terms = !total_, .ends = ends_, .running = running, .takes = sums}, to,
                          total_, runs_);
  }
  /// The sums of gradients that several rows share: by parameters, tables, inputs. Empty before add().
  std::optional<shared_sums> const& total() const { return total_; }
  /// Rounds one of its sums to the rows of a gradient.
  void round(gradient_array<double> const& from, tensor<T> const& to) const { round_to(from, to, p_.first_query); }

 private:
  cpu<T, Arch> const& exec_;
  Op const& op_;
  problem_shape p_;
  attune::detail::saved_view<T const, Op> saved_;
  cotangents<Op, tensor<T const>> d_;
  heads_served runs_;
  std::vector<T> ends_, sums_;
  std::optional<shared_sums> total_;
};

/// to += more, row by row. The features of `more` are contiguous.
template <class T, class Arch>
void add_rows(cpu<T, Arch> const& exec, tensor<T> const& more, tensor<T> const& to) {
  for_each_row<T>(exec, more.extents(), 0, [&](index_t b, index_t h, index_t i, T*) {
    T const* const from = more.row(b, h, i);
    T* const sum = to.row(b, h, i);
    for (index_t d = 0; d < more.extents().feature; ++d) sum[d * to.steps().feature] += from[d];
  });
}

/// The states of the rows of decode() over some of the keys.
template <class T, class Arch, class Op>
auto decode_part(cpu<T, Arch> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in, problem_shape const& p,
                 key_interval keys) {
  return decode_states(exec, op, contiguous_keys<Op, T>(in), p, keys);
}
/// The same from pages, which hold the keys from keys.first on. in: the same inputs with positions.
template <class T, class Arch, class Op>
auto decode_part(cpu<T, Arch> const& exec, Op const& op, inputs<Op, tensor<T const>> const& paged,
                 inputs<Op, tensor<T const>> const& in, page_table const& pages, problem_shape const& p,
                 key_interval keys) {
  return decode_states(exec, op, paged_keys<Op, T>(paged, in, pages, keys.first), p, keys);
}

}  // namespace attune::exec_cpu
