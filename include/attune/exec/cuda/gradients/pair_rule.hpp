// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   contractions and h = <do, v> of a pair  ->  its weight, and the gradients by its contractions and by members
//
// The rule of one pair, for tiles of queries and tiles of keys alike. Masses e^(a - m) need no dual number; all others
// follow exec/row_slopes.hpp.
#pragma once

#include <attune/exec/cuda/gradients/call.hpp>
#include <attune/exec/row_slopes.hpp>
#include <attune/exec/weight_gate.hpp>

namespace attune::exec_cuda {

/// The numbers of a row that its pairs read: see pair_record. F: the scalar that policies run on.
template <class Op, class F = fast_float>
struct pair_numbers {
  float scale, gap, factor, by_earned, reference, unit, share, by_ground;
  typename gradient_facts<Op, F>::bound f;  ///< not of an affine operator
};

/// The contribution of a pair. Of an affine operator, by[0] is the gradient by the logit: the caller multiplies by the
/// slope of the row.
template <class Op>
struct pulled_pair {
  float weight, by[Op::contractions::size == 0 ? 1 : Op::contractions::size];
};

/// A policy bound to a row, in dual numbers. Moving: member m moves along direction first + m.
template <class D, class P, bool Moving, class Bound>
ATTUNE_HD ATTUNE_INLINE auto in_duals(Bound const& bound, [[maybe_unused]] int first) {
  using F = decltype(D::value);
  return with_members<D, P, F>(
      bound, [&](F const& x, [[maybe_unused]] int m) { return Moving ? D::variable(x, first + m) : D(x); });
}

/// Receives no gradient by members.
struct no_members {
  template <class F>
  ATTUNE_HD void operator()(int, F const&) const {}
};

/// x: the values of the contractions; j: the number of the key; h = <do, v_j>; u: the random number that the weight
/// gate reads. With Members, move(m, gradient) gets the gradient by member m of member_sums<Op>.
/// A row whose factor is NaN has a gap and a reference of NaN, so all its keys get NaN.
template <class Op, bool Members = false, class F, class Move = no_members>
ATTUNE_HD ATTUNE_INLINE pulled_pair<Op> pull_pair(pair_numbers<Op, F> const& row, F const* x, [[maybe_unused]] int j,
                                                  float h, [[maybe_unused]] F u = 0,
                                                  [[maybe_unused]] Move const& move = {}) {
  using facts = gradient_facts<Op, F>;
  using sums = member_sums<Op>;
  using attune::detail::chained;
  constexpr int logit = Op::logit_contractions;
  pulled_pair<Op> to;

  // The weight gate: f_j multiplies the gain, and later the weight.
  using gate = typename Op::weight_gate_policy;
  using G = dual<F, 1 + (Members ? sums::weight_gate : 0)>;
  [[maybe_unused]] G f_j;
  float gain = h;
  if constexpr (Op::has_weight_gate) {
    G number(u);
    if constexpr (attune::detail::contracts_weights<Op>) number = G::variable(x[logit], 0);
    f_j = attune::detail::weight_factor<gate>(in_duals<G, gate, Members>(row.f.weight_gate, 1), number,
                                              key<G>{G(F(float(j)))});
    gain = h * float(f_j.value);
  }
  float const by_e = approximate::fma(gain, row.factor, row.by_earned);
  // e by: a mass of 0 wins over an infinite slope
  auto const fused = [&](float e) {
    to.weight = e * row.factor;
    if constexpr (facts::is::is.uniform_share) to.weight += row.share;
    float by = by_e;
    if constexpr (facts::is::is.ground_mass) {
      bool const below = e < row.unit;
      by -= below ? row.by_ground : 0.f;
      if constexpr (Members) move(sums::logit, below ? row.by_ground * row.unit : 0.f);
    }
    return e == 0.f ? 0.f : e * by;
  };
  if constexpr (facts::affine) {
    to.by[0] = fused(approximate::ex2(approximate::fma(float(x[0]), row.scale, row.gap)));
    if constexpr (Members) {
      move(0, chained(F(to.by[0]), x[0]));
      move(1, to.by[0]);
    }
  } else {
    using D = dual<F, logit + (Members ? sums::logit : 0) == 0 ? 1 : logit + (Members ? sums::logit : 0)>;
    using kernel_policy = typename Op::kernel_policy;
    using length_scale_policy = typename Op::length_scale_policy;
    constexpr int of_kernel = logit + member_count<kernel_policy>,
                  of_length_scale = of_kernel + member_count<length_scale_policy>;
    using moving = bound_operator<Op, D>;
    moving const f{in_duals<D, kernel_policy, Members>(row.f.kernel, logit),
                   in_duals<D, length_scale_policy, Members>(row.f.length_scale, of_kernel),
                   in_duals<D, typename Op::gate_policy, Members>(row.f.gate, of_length_scale),
                   {},
                   {},
                   {},
                   D(row.f.logit_shift),
                   {}};
    D moved[logit + 1];
    ATTUNE_UNROLL
    for (int c = 0; c < logit; ++c) moved[c] = D::variable(x[c], c);
    D const a = f.logit(moved, key<D>{D(F(float(j)))});
    F by_logit;
    if constexpr (facts::fused) {
      by_logit = fused(approximate::ex2(approximate::fma(float(a.value), approximate::log2e, row.gap)));
    } else {
      constexpr int own = Members ? sums::normalizer : 0;
      using N = dual<F, 1 + own>;
      attune::detail::mass_pair<F> const pair{row.factor, row.share, row.by_earned, row.by_ground};
      auto const pulled = pair.template pull<Op, N, 1, own, chain_rule::guarded>(
          in_duals<N, typename Op::normalizer_policy, Members>(row.f.normalizer, 1), a.value, row.reference, by_e,
          [&](int m, F by) { move(sums::logit + m, by); });
      to.weight = float(pulled.weight);
      by_logit = pulled.by_logit;
    }
    ATTUNE_UNROLL
    for (int c = 0; c < logit; ++c) to.by[c] = float(chained(by_logit, a.tangent[c]));
    if constexpr (Members) {
      ATTUNE_UNROLL
      for (int m = 0; m < sums::logit; ++m) move(m, chained(by_logit, a.tangent[logit + m]));
    }
  }
  if constexpr (Op::has_weight_gate) {
    F const by_factor = to.weight * h;
    if constexpr (attune::detail::contracts_weights<Op>) to.by[logit] = float(chained(by_factor, f_j.tangent[0]));
    if constexpr (Members) {
      ATTUNE_UNROLL
      for (int m = 0; m < sums::weight_gate; ++m)
        move(sums::logit + sums::normalizer + m, chained(by_factor, f_j.tangent[1 + m]));
    }
    to.weight *= float(f_j.value);
  }
  return to;
}

}  // namespace attune::exec_cuda
