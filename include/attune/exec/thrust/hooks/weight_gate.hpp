// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   w_j v_j  ->  w_j f_j v_j        df_j = w_j <do, v_j>
//
// The weight gate (exec/weight_gate.hpp) in row programs. Without one, the factor is the constant 1: compilers drop it.
#pragma once

#include <attune/exec/thrust/rows.hpp>
#include <attune/exec/weight_gate.hpp>

namespace attune::exec_thrust {

/// x -> f_j x for the pair with key j. f_j is computed once per pair, not per feature.
template <class T, class Op>
ATTUNE_HD auto pair_factor(row_pairs<T, Op> const& pairs, typename row_pairs<T, Op>::bound const& f, index_t j) {
  T x[Op::contractions::size + 1];
  pairs.template contract<Op::logit_contractions>(x, j);
  return [factor = attune::detail::factor_of_pair(pairs.at.op, f, x, pairs.at.p, pairs.b, pairs.h, pairs.i, j)](
             T const& value) { return T(factor * value); };
}

/// The same in gradients. D: a dual number, whose directions are the contractions of the pair.
template <class T, class Op, class D>
struct moving_factor {
  D factor;
  T gain = T(0);  ///< <do, v_j>, before the gate; 0 until it is computed

  /// x: the values of the contractions.
  template <class Bound>
  ATTUNE_HD moving_factor(row_pairs<T, Op> const& pairs, Bound const& moving, D const* x, index_t j)
      : factor(attune::detail::factor_of_pair(pairs.at.op, moving, x, pairs.at.p, pairs.b, pairs.h, pairs.i, j)) {}
  ATTUNE_HD T operator()(T const& of_value) {
    gain = of_value;
    return of_value * factor.value;
  }
  /// Adds df_j, and gives the value the weight f_j w_j. Outside a support nothing is read. The directions of parameters
  /// start at First.
  template <int First, int Parameters, class Pair>
  ATTUNE_HD void pull([[maybe_unused]] Pair& to, [[maybe_unused]] T* by_parameter) const {
    using attune::detail::chained;
    if (!Op::has_weight_gate || (Op::has_threshold && to.weight == T(0))) return;
    T const by_factor = to.weight * gain;
    if constexpr (constexpr int last = Op::contractions::size - 1; Op::logit_contractions <= last)
      to.by_contraction[last] = chained(by_factor, factor.tangent[last]);
    for (int s = 0; s < Parameters; ++s)
      by_parameter[s] = by_parameter[s] + chained(by_factor, factor.tangent[First + s]);
    to.weight = to.weight * factor.value;
  }
};

}  // namespace attune::exec_thrust
