// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   for each visible key, in the order of the ordered sums:  contractions, sums -> logit
//
// Ordered sums (policies/ordered_sum.hpp) of one row. A thread walks the keys in the order of the sums and carries one
// number for each. Gradients keep two numbers per pair: the sum y, and the sum of dy over the other side of the key.
// Without them every pair would walk its row again.
#pragma once

#include <attune/exec/thrust/candidates.hpp>
#include <attune/exec/thrust/hooks/interpolated.hpp>

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

/// Calls visit(j, x) for every visible key, in the order of the ordered sums; x: the values of the contractions of the
/// logit. If visit returns false, no further key follows.
template <class T, class Op, class Visit>
ATTUNE_HD void for_each_pair(row_pairs<T, Op> const& pairs, typename row_pairs<T, Op>::bound const& f,
                             Visit const& visit) {
  using contractions = typename Op::contractions;
  T sum[contractions::size + 1];
  for (T& s : sum) s = T(0);
  bool goes_on = true;
  for_each_key_in<contraction::order_of<contractions>>(pairs, [&](index_t j) {
    if (!goes_on) return;
    T x[contractions::size + 1];
    pairs.template contract<0, Op::logit_contractions>(x, j);
    contraction::each_ordered<contractions>([&](auto c, auto index, auto source) {
      using C = decltype(c);
      constexpr int at = decltype(index)::value;
      T const before = sum[at];
      sum[at] = before + contraction::mapped<C>(Op::template part<at>(f), x[decltype(source)::value]);
      x[at] = C::own == contraction::own_key::included ? sum[at] : before;
    });
    read_rows(pairs, x);
    goes_on = visit(j, x);
  });
}
/// The logit of one visible key. With an ordered sum this walks the row as far as the key. A threshold is valid only
/// for exactly the logits from which it was found, bit for bit.
template <class T, class Op>
ATTUNE_HD T logit_of_key(row_pairs<T, Op> const& pairs, typename row_pairs<T, Op>::bound const& f, index_t wanted) {
  if constexpr (has_ordered_sums<Op>) {
    T a(0);
    for_each_pair(pairs, f, [&](index_t j, T const* x) {
      if (j != wanted) return true;
      a = f.logit(x, key<T>{T(double(j))});
      return false;
    });
    return a;
  } else if constexpr (Op::has_threshold) {
    return same_logit(pairs, f, wanted);
  } else {
    return pairs.logit(f, wanted);
  }
}
/// Calls visit(j, logit) for every visible key, in the order in which the operator takes them. logit() computes it, or
/// has it.
template <class T, class Op, class Visit>
ATTUNE_HD void for_each_logit(row_pairs<T, Op> const& pairs, typename row_pairs<T, Op>::bound const& f,
                              Visit const& visit) {
  if constexpr (has_ordered_sums<Op>)
    for_each_pair(pairs, f, [&](index_t j, T const* x) {
      visit(j, [&] { return f.logit(x, key<T>{T(double(j))}); });
      return true;
    });
  else
    pairs.for_each_key([&](index_t j) { visit(j, [&] { return logit_of_key(pairs, f, j); }); });
}

/// The memory of programs for derived contractions: two numbers for each ordered sum and pair.
template <class T, class Op>
struct derived_pairs {
  using contractions = typename Op::contractions;
  T *sums = nullptr,     ///< y, by contraction, row and key
      *grown = nullptr;  ///< the sum of dy over the keys whose y contains the key; 0 at first

  /// How many numbers each array has.
  static index_t size(problem_shape const& p) {
    return has_ordered_sums<Op> ? contractions::size * p.batch * p.heads * p.queries * p.keys : 0;
  }
  /// The place of contraction number n for the pair with key j.
  ATTUNE_HD static index_t at(row_pairs<T, Op> const& pairs, int n, index_t j) {
    problem_shape const& p = pairs.at.p;
    return (n * p.batch * p.heads * p.queries + pairs.at.row_number(pairs.b, pairs.h, pairs.i)) * p.keys + j;
  }
  /// Stores the ordered sums of a pair. x: the values of its contractions.
  ATTUNE_HD void store(row_pairs<T, Op> const& pairs, index_t j, T const* x) const {
    contraction::each_ordered<contractions>(
        [&](auto, auto index, auto) { sums[at(pairs, decltype(index)::value, j)] = x[decltype(index)::value]; });
  }
  /// Reads the derived contractions of a pair, where x has the others.
  ATTUNE_HD void read(row_pairs<T, Op> const& pairs, index_t j, T* x) const {
    contraction::each_ordered<contractions>(
        [&](auto, auto index, auto) { x[decltype(index)::value] = sums[at(pairs, decltype(index)::value, j)]; });
    read_rows(pairs, x);
  }
  /// Passes the gradients by derived contractions on to the contractions that they are computed from, and to the
  /// parameters: directions of D from First on.
  template <int First, int Parameters, class Moving, class D>
  ATTUNE_HD void pull(row_pairs<T, Op> const& pairs, Moving const& moving, index_t j, T const* x, D const* moved,
                      T* by_contraction, T* by_parameter) const {
    using attune::detail::chained;
    pull_rows(pairs, x, by_contraction);
    contraction::each_ordered<contractions>([&](auto c, auto index, auto source) {
      constexpr int at_sum = decltype(index)::value, from = decltype(source)::value;
      T const by_map = grown[at(pairs, at_sum, j)];
      D const map = contraction::mapped<decltype(c)>(Op::template part<at_sum>(moving), moved[from]);
      by_contraction[from] = by_contraction[from] + chained(by_map, map.tangent[from]);
      for (int s = 0; s < Parameters; ++s) by_parameter[s] = by_parameter[s] + chained(by_map, map.tangent[First + s]);
    });
  }
};

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
