// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   z_ij = (1 - f) z_i[n] + f z_i[n + 1],    n = floor(y), f = y - n
//
// Rows that are read at an ordered sum y (policies/interpolated.hpp), in row programs.
#pragma once

#include <attune/exec/thrust/rows.hpp>
#include <attune/policies/interpolated.hpp>

namespace attune::exec_thrust {

/// The two entries that a row of `count` numbers is read at, for an index y, and the weight of the second.
template <class T>
struct row_entries {
  index_t lower, upper;
  T fraction;  ///< NaN where y is NaN
  bool moves;  ///< the value moves with y

  ATTUNE_HD row_entries(T const& y, index_t count) {
    T const last = T(double(count - 1)), clamped = math::smaller(math::larger(T(0), y), last);  // 0 where y is NaN
    T const below = math::floor(clamped);
    lower = index_t(below);
    upper = lower + 1 < count ? lower + 1 : lower;
    fraction = math::select(y == y, T(clamped - below), y);
    moves = !(y < T(0)) && upper != lower;
  }
  /// The row's number. At an integer the second entry is not used: it may be infinite.
  template <class Row>
  ATTUNE_HD T value(Row const& row) const {
    T const a = row[lower];
    return fraction == T(0) ? a : T((T(1) - fraction) * a + fraction * row[upper]);
  }
  /// The derivative by y.
  template <class Row>
  ATTUNE_HD T slope(Row const& row) const {
    return moves ? T(row[upper] - row[lower]) : T(0);
  }
};
/// Calls visit(number of the contraction, number of its sum, entries, row) for each read of a pair. x: its sums.
template <class T, class Op, class Visit>
ATTUNE_HD void each_read_row([[maybe_unused]] row_pairs<T, Op> const& pairs, [[maybe_unused]] T const* x,
                             [[maybe_unused]] Visit const& visit) {
  if constexpr (has_interpolated_rows<Op>) {
    auto const& all = pairs.at.in.position_scores;
    auto const from = attune::detail::broadcast(all, pairs.b, pairs.h, pairs.i);
    features const row(all, from.batch, from.head, from.position, 0);
    contraction::each_interpolated<typename Op::contractions>([&](auto, auto index, auto source) {
      visit(index, source, row_entries<T>(x[decltype(source)::value], pairs.at.p.positions), row);
    });
  }
}
/// Reads the rows of one pair, where x has the values of the other contractions.
template <class T, class Op>
ATTUNE_HD void read_rows(row_pairs<T, Op> const& pairs, T* x) {
  each_read_row(pairs, x, [&](auto index, auto, auto const& entries, auto const& row) {
    x[decltype(index)::value] = entries.value(row);
  });
}
/// Adds the gradients by what the rows gave to the gradients by the sums.
template <class T, class Op>
ATTUNE_HD void pull_rows(row_pairs<T, Op> const& pairs, T const* x, T* by_contraction) {
  each_read_row(pairs, x, [&](auto index, auto source, auto const& entries, auto const& row) {
    T& by_sum = by_contraction[decltype(source)::value];
    by_sum = by_sum + attune::detail::chained(by_contraction[decltype(index)::value], entries.slope(row));
  });
}

// exec/thrust/gradients/gradient_rows.hpp
template <class T, class Op>
struct gradient_call;
template <class T, class Op, bool Parameters>
class row_gradients;

/// d row_i[n] = sum_j (1 - f_ij) dz_ij over the pairs that read entry n first,  + sum_j f_ij dz_ij over the others.
template <class T, class Op>
struct row_entries_program {
  gradient_call<T, Op> call;
  tensor<T> to;  ///< (B, H, Lq, P), zeros at first
  ATTUNE_HD ATTUNE_PROGRAM void operator()(index_t n) const {
    using attune::detail::chained;
    row_task const t(n, call.at.p, 1);
    if (!call.at.serves(t.h)) return;
    row_gradients<T, Op, false> const row(call, t.b, t.h, t.i);
    features const sums(to, t.b, t.h, t.i, 0);
    row.view.for_each_key([&](index_t j) {
      auto const pair = row(j);
      T x[Op::contractions::size];
      call.derived.read(row.view, j, x);
      each_read_row(row.view, x, [&](auto index, auto, row_entries<T> const& at, auto const&) {
        T const by = pair.by_contraction[decltype(index)::value];
        if (scalar<T>::vanishes(by)) return;
        sums[at.lower] = sums[at.lower] + chained(by, T(T(1) - at.fraction));
        sums[at.upper] = sums[at.upper] + chained(by, at.fraction);
      });
    });
  }
};

/// Calls visit(field, width, to -> program) for each input that only derived contractions read.
template <class T, class Op, class Visit>
void each_derived_input(gradient_call<T, Op> const& call, Visit const& visit) {
  if constexpr (has_interpolated_rows<Op>)
    visit(field::position_scores, call.at.p.positions,
          [&](tensor<T> const& to) { return row_entries_program<T, Op>{call, to}; });
}

}  // namespace attune::exec_thrust
