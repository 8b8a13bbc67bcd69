// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   for each visible key, in the order of the ordered sums:  contractions, sums -> logit
//
// Ordered sums (policies/ordered_sum.hpp) of one row. A thread walks the keys in the order of the sums and carries one
// number for each. Gradients keep two numbers per pair: the sum y, and the sum of dy over the other side of the key.
// Without them every pair would walk its row again.
#pragma once

#include <attune/exec/thrust/rows.hpp>

namespace attune::exec_thrust {

/// Calls visit(j) for every visible key of a row, from the first to the last or the other way. From the last to the
/// first, every key between the first and the last visible one costs a question to the mask.
template <contraction::key_order Order, class T, class Op, class Visit>
ATTUNE_HD void for_each_key_in(row_pairs<T, Op> const& pairs, Visit const& visit) {
  if constexpr (Order == contraction::key_order::earlier) {
    pairs.for_each_key(visit);
  } else {
    mask_row const r = pairs.at.p.row(pairs.b, pairs.h, pairs.i);
    index_t first = 0, last = 0;
    for (key_interval k = mask::next(pairs.at.op.mask, r, 0); !k.empty(); k = mask::next(pairs.at.op.mask, r, k.last)) {
      if (last == 0) first = k.first;
      last = k.last;
    }
    for (index_t j = last; j-- > first;)
      if (mask::sees(pairs.at.op.mask, r, j)) visit(j);
  }
}

/// Calls visit(j, x) for every visible key in the order of the ordered sums; x: the values of all contractions. If
/// visit returns false, no further key follows.
template <class T, class Op, class Visit>
ATTUNE_HD void for_each_in_order(row_pairs<T, Op> const& pairs, typename row_pairs<T, Op>::bound const& f,
                                 Visit const& visit) {
  using contractions = typename Op::contractions;
  T sum[contractions::size + 1];
  for (T& s : sum) s = T(0);
  bool goes_on = true;
  for_each_key_in<contraction::order_of<contractions>>(pairs, [&](index_t j) {
    if (!goes_on) return;
    T x[contractions::size + 1];
    pairs.contract(x, j);
    contraction::each_ordered<contractions>([&](auto c, auto index, auto source) {
      using C = decltype(c);
      constexpr int at = decltype(index)::value;
      T const before = sum[at];
      sum[at] = before + contraction::mapped<C>(Op::template part<at>(f), x[decltype(source)::value]);
      x[at] = C::own == contraction::own_key::included ? sum[at] : before;
    });
    goes_on = visit(j, x);
  });
}
/// Calls visit(j, logit) for every visible key in the order of the ordered sums.
template <class T, class Op, class Visit>
ATTUNE_HD void for_each_logit(row_pairs<T, Op> const& pairs, typename row_pairs<T, Op>::bound const& f,
                              Visit const& visit) {
  exec_thrust::for_each_in_order(pairs, f, [&](index_t j, T const* x) {
    visit(j, f.logit(x, key<T>{T(double(j))}));
    return true;
  });
}
/// The logit of one visible key. Walks the row as far as the key.
template <class T, class Op>
ATTUNE_HD T logit_in_order(row_pairs<T, Op> const& pairs, typename row_pairs<T, Op>::bound const& f, index_t wanted) {
  T a(0);
  exec_thrust::for_each_in_order(pairs, f, [&](index_t j, T const* x) {
    if (j != wanted) return true;
    a = f.logit(x, key<T>{T(double(j))});
    return false;
  });
  return a;
}

/// Two numbers for each ordered sum and pair. Empty if the operator has no ordered sum.
template <class T, class Op, bool = has_ordered_sums<Op>>
struct ordered_pairs {};
template <class T, class Op>
struct ordered_pairs<T, Op, true> {
  T *sums = nullptr,     ///< y, by contraction, row and key
      *grown = nullptr;  ///< the sum of dy over the keys whose y contains the key; 0 at first
  /// The place of contraction number n for row number `row` and key j.
  ATTUNE_HD static index_t at(problem_shape const& p, int n, index_t row, index_t j) {
    return (n * p.batch * p.heads * p.queries + row) * p.keys + j;
  }
  /// How many numbers each array has.
  static index_t size(problem_shape const& p) {
    return Op::contractions::size * p.batch * p.heads * p.queries * p.keys;
  }
};

}  // namespace attune::exec_thrust
