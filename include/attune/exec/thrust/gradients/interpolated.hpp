// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   d row_i[n] = sum_j (1 - f_ij) dz_ij over the pairs that read entry n first,  + sum_j f_ij dz_ij over the others
//
// The gradient of rows that are read at an index (policies/interpolated.hpp). A task owns one row.
#pragma once

#include <attune/exec/thrust/gradients/gradient_rows.hpp>

namespace attune::exec_thrust {

/// The gradient of each row.
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
