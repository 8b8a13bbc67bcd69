// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   a_ij = s_ij - softplus(beta) softplus(-g_ij),   g_ij = <gate_q_i, gate_k_j> or given
#pragma once

#include <array>

#include <attune/policies/concepts.hpp>
#include <attune/policies/saturated_softplus.hpp>

namespace attune::gate {

/// Formula:  a = s - softplus(beta) softplus(-g)
/// Recovers: no gate as beta -> -inf (beta = -inf included) or g -> +inf.
/// Requires: inputs .gate_q (B, H, Lq, Dg) and .gate_k (B, Hk, Lk, Dg), unscaled; given_softplus: .gates (B, H, Lq,
///           Lk).
/// Axioms:   only suppresses: a <= s; increasing in g; the length scale does not amplify it.
/// Numerics: softplus keeps e^beta for beta << 0 instead of 0. g = -inf switches the key off (a = -inf). At beta = -inf
///           the gate is off for every g. softplus(beta) saturates at 2^96. Error at most 4 u (softplus(beta)
///           softplus(-g)), in addition to the error of g.
/// Cost:     2 Dg flops, one exponential and one log1p per pair.
/// Backends: all.
/// Source:   Principled Attention, section 3.2.2.
/// Example:  docs/reference/policies.md
template <class Contraction>
struct basic_softplus {
  static constexpr auto role = policy_role::gate;
  using contraction = Contraction;
  parameter beta = 0;  ///< strength softplus(beta); -inf switches the gate off

  constexpr basic_softplus() = default;
  /// With beta = b.
  constexpr basic_softplus(parameter b) : beta(b) {}
  static constexpr auto parameters() {
    return std::array{listed("beta", &basic_softplus::beta, domain::real_or_minus_inf)};
  }

  template <class T>
  struct bound {
    T strength;  ///< softplus(beta) of the row, saturated
    ATTUNE_HD T gate(T const& s, T const& g) const {
      return math::select(strength == T(0), s, T(s - strength * math::softplus(T(-g))));
    }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {attune::saturated_softplus(r(beta))};
  }
};

/// The gate computed from its own projections, gate_q and gate_k.
using softplus = basic_softplus<contraction::gate_dot>;
/// The gate with g_ij computed by the caller.
using given_softplus = basic_softplus<contraction::given_gates>;

}  // namespace attune::gate
