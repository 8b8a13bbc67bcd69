// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   to(b, h, i, n) = sum_j da_ij  d a_ij / d entry n        for a table that `bind` reads
//
// A task owns a few entries of one row: they are the directions of its dual numbers.
#pragma once

#include <attune/exec/thrust/gradients/gradient_rows.hpp>

namespace attune::exec_thrust {

/// A row's part of the gradient of a table that `bind` reads.
template <class T, class Op>
struct entry_program {
  static constexpr int some = attune::detail::entries_at_once;
  gradient_call<T, Op> call;
  tensor<T> to;     ///< (B, H, Lq, entries)
  int first_entry;  ///< number of the table's first entry

  ATTUNE_HD index_t tasks() const { return row_task::count(call.at.p, stretches<some>(to.extents().feature)); }
  ATTUNE_HD ATTUNE_PROGRAM void operator()(index_t n) const {
    using D = dual<T, some>;
    constexpr int pairs = Op::contractions::size;
    index_t const width = to.extents().feature;
    row_task const t(n, call.at.p, stretches<some>(width));
    if (!call.at.serves(t.h)) return;
    row_gradients<T, Op, false> const row(call, t.b, t.h, t.i);
    index_t const first = t.piece * some;
    parameter_seeds seeds;
    seeds.first_entry = first_entry + int(first);
    seeds.entries = some;
    auto const facts =
        attune::detail::row_of_count<T>(call.at.p, call.records[call.row_number(t.b, t.h, t.i)].visible, t.b, t.h, t.i);
    auto const moving = call.at.op.bind(lifted(facts, lift<D>{{}, seeds}));
    accumulators<T, some> acc(0, T(0));
    row.view.for_each_key([&](index_t j) {
      T const by_logit = row(j).by_contraction[pairs];
      T x[pairs + 1];
      row.view.contract(x, j);
      D values[pairs + 1];
      for (int c = 0; c < pairs; ++c) values[c] = D(x[c]);
      D const a = moving.logit(values, key<D>{D(T(double(j)))});
      for (int k = 0; k < some; ++k) acc.x[k] = acc.x[k] + attune::detail::chained(by_logit, a.tangent[k]);
    });
    acc.write(features(to, t.b, t.h, t.i, first), width - first);
  }
};

}  // namespace attune::exec_thrust
