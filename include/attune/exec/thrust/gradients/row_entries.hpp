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
    problem_shape const& p = call.at.p;
    row_task const t(n, p, 1);
    if (!call.at.serves(t.h)) return;
    row_gradients<T, Op, false> const row(call, t.b, t.h, t.i);
    features const sums(to, t.b, t.h, t.i, 0);
    row.view.for_each_key([&](index_t j) {
      auto const pair = row(j);
      contraction::each_interpolated<typename Op::contractions>([&](auto, auto index, auto source) {
        T const by = pair.by_contraction[decltype(index)::value];
        if (scalar<T>::vanishes(by)) return;
        row_entries<T> const at(
            call.ordered.sums[call.ordered.at(p, decltype(source)::value, call.row_number(t.b, t.h, t.i), j)],
            p.positions);
        sums[at.lower] = sums[at.lower] + chained(by, T(T(1) - at.fraction));
        sums[at.upper] = sums[at.upper] + chained(by, at.fraction);
      });
    });
  }
};

}  // namespace attune::exec_thrust
