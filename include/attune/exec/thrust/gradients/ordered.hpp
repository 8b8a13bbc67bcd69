// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   by_map_ij' = sum of dy_ij over the keys j whose y_ij contains key j'
//
// Ordered sums (policies/ordered_sum.hpp) in the gradients.
#pragma once

#include <attune/exec/thrust/gradients/interpolated.hpp>

namespace attune::exec_thrust {

/// For each key of a row, the sum of dy over the keys whose ordered sum contains it. Before, these sums are 0.
template <class T, class Op>
struct ordered_program {
  gradient_call<T, Op> call;
  ATTUNE_HD ATTUNE_PROGRAM void operator()(index_t n) const {
    using contractions = typename Op::contractions;
    constexpr auto order = contraction::opposite(contraction::order_of<contractions>);
    row_task const t(n, call.at.p, 1);
    if (!call.at.serves(t.h)) return;
    row_gradients<T, Op, false> const row(call, t.b, t.h, t.i);
    T sum[contractions::size + 1];
    for (T& s : sum) s = T(0);
    for_each_key_in<order>(row.view, [&](index_t j) {
      auto const pair = row(j);
      contraction::each_ordered<contractions>([&](auto c, auto index, auto) {
        constexpr int at = decltype(index)::value;
        T const before = sum[at];
        sum[at] = before + pair.by_contraction[at];
        call.derived.grown[call.derived.at(row.view, at, j)] =
            decltype(c)::own == contraction::own_key::included ? sum[at] : before;
      });
    });
  }
};

/// Runs when the records of all rows are there.
template <class T, class Policy, class Op>
void grow_derived(thrust_executor<T, Policy> const& exec, gradient_call<T, Op> const& call) {
  if constexpr (has_ordered_sums<Op>) for_each_task(exec, row_task::count(call.at.p, 1), ordered_program<T, Op>{call});
}

}  // namespace attune::exec_thrust
