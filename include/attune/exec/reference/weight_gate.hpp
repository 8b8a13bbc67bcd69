// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   out = sum_n f_n w_n v_n        df_n = w_n <do, v_n>
//
// The factor f_n by which a weight gate multiplies what a key adds to the value sum. Without a gate nothing is
// multiplied.
#pragma once

#include <attune/core/philox.hpp>
#include <attune/exec/reference/contractions/contraction.hpp>

namespace attune::detail {

/// w -> f_n w for one key, in scalar S.
template <class S, class Op>
struct pair_factor {
  S factor = S(1);

  pair_factor() = default;
  /// The gate reads the last contraction of the pair, its random number, or nothing. x: the contractions of the pair.
  template <class Contract, class Bound>
  pair_factor([[maybe_unused]] Contract const& contract, [[maybe_unused]] Bound const& f, [[maybe_unused]] S const* x,
              [[maybe_unused]] index_t b, [[maybe_unused]] index_t h, [[maybe_unused]] index_t i, index_t j) {
    using source = typename Op::weight_gate_policy::contraction;
    [[maybe_unused]] key<S> const at{S(double(j))};
    if constexpr (!Op::has_weight_gate)
      return;
    else if constexpr (std::is_same_v<source, contraction::none>)
      factor = f.weight_gate.factor(at);
    else if constexpr (std::is_same_v<source, contraction::uniform>)
      factor = f.weight_gate.factor(
          S(double(pair_number(contract.op.weight_gate.seed, b, h, i + contract.p.offset_of(b), j))), at);
    else
      factor = f.weight_gate.factor(x[Op::contractions::size - 1], at);
  }
  /// T: S, or the scalar of its value.
  template <class T>
  T operator()(T const& w) const {
    if constexpr (!Op::has_weight_gate)
      return w;
    else if constexpr (std::is_same_v<T, S>)
      return w * factor;
    else
      return w * factor.value;
  }
  /// If S is a dual number: calls add(move) with the gradient through f_n, move(direction). by: w_n <do, v_n>.
  template <class T, class Add>
  void pull([[maybe_unused]] T const& by, [[maybe_unused]] Add const& add) const {
    if constexpr (Op::has_weight_gate) add([&](int k) { return chained(by, factor.tangent[k]); });
  }
};
/// The same, from the tensors.
template <class T, class Op, class View, class Bound>
pair_factor<T, Op> gate_of_key(reference_contraction<T, Op, View> const& contract, Bound const& f, index_t b, index_t h,
                               index_t i, index_t j) {
  T x[Op::contractions::size + 1];
  if constexpr (Op::has_weight_gate) contract.all(x, b, h, i, j);
  return {contract, f, x, b, h, i, j};
}

}  // namespace attune::detail
