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
/// The row of numbers of a query.
template <class T, class Op>
ATTUNE_HD auto numbers_of_row(row_pairs<T, Op> const& pairs) {
  auto const& x = pairs.at.in.position_scores;
  auto const from = attune::detail::broadcast(x, pairs.b, pairs.h, pairs.i);
  return features(x, from.batch, from.head, from.position, 0);
}
/// Reads the row of a query at the ordered sums of one pair, where x has the values of the other contractions.
template <class T, class Op>
ATTUNE_HD void read_rows(row_pairs<T, Op> const& pairs, T* x) {
  contraction::each_interpolated<typename Op::contractions>([&](auto, auto index, auto source) {
    row_entries<T> const at(x[decltype(source)::value], pairs.at.p.positions);
    x[decltype(index)::value] = at.value(numbers_of_row(pairs));
  });
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
    if constexpr (has_interpolated_rows<Op>) read_rows(pairs, x);
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
