// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   out_i = sum_j f_ij w_ij v_j,   f_ij = factor(u_ij, j),   u_ij: a contraction, a random number, or nothing
//
// How executors compute the factor of a weight gate. A weight gate multiplies what a key adds to the value sum. It does
// not change the sum of the masses, the lse or the weight of the ground.
#pragma once

#include <attune/core/philox.hpp>
#include <attune/exec/problem_shape.hpp>

namespace attune::detail {

/// Whether the weight gate of an operator reads a random number.
template <class Op>
inline constexpr bool draws_numbers =
    std::is_same_v<typename Op::weight_gate_policy::contraction, contraction::uniform>;
/// Whether it reads a contraction: the last one of the operator.
template <class Op>
inline constexpr bool contracts_weights = Op::logit_contractions < Op::contractions::size;
/// Whether it reads a number per pair.
template <class Op>
inline constexpr bool reads_numbers = draws_numbers<Op> || contracts_weights<Op>;

/// The factor of a bound weight gate. `u` is not used if the gate reads no number.
template <class Gate, class Bound, class T>
ATTUNE_HD ATTUNE_INLINE T weight_factor(Bound const& gate, [[maybe_unused]] T const& u, key<T> const& k) {
  if constexpr (std::is_same_v<typename Gate::contraction, contraction::none>)
    return gate.factor(k);
  else
    return gate.factor(u, k);
}

/// The random number of a pair that the operator's weight gate reads.
template <class Op>
ATTUNE_HD float drawn_number(Op const& op, problem_shape const& p, index_t b, index_t h, index_t i, index_t j) {
  return detail::pair_number(op.weight_gate.seed, b, h, i + p.offset_of(b), j);
}

/// The same for one pair. x: the values of the operator's contractions. `bound`: the operator, bound to the row.
template <class Op, class Bound, class T>
ATTUNE_HD T factor_of_pair(Op const& op, Bound const& bound, [[maybe_unused]] T const* x,
                           [[maybe_unused]] problem_shape const& p, [[maybe_unused]] index_t b,
                           [[maybe_unused]] index_t h, [[maybe_unused]] index_t i, index_t j) {
  T u(0);
  if constexpr (detail::draws_numbers<Op>)
    u = T(double(detail::drawn_number(op, p, b, h, i, j)));
  else if constexpr (detail::contracts_weights<Op>)
    u = x[Op::logit_contractions];
  static_cast<void>(op);
  return detail::weight_factor<typename Op::weight_gate_policy>(bound.weight_gate, u, key<T>{T(double(j))});
}

}  // namespace attune::detail
