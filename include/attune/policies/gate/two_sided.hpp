// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   a_ij = s_ij + softplus(beta) tanh(g_ij / 2)
#pragma once

#include <array>

#include <attune/policies/concepts.hpp>
#include <attune/policies/saturated_softplus.hpp>

namespace attune::gate {

/// Formula:  a = s + softplus(beta) tanh(g / 2)
/// Recovers: no gate as beta -> -inf (beta = -inf included), and at g = 0.
/// Requires: inputs .gate_q (B, H, Lq, Dg) and .gate_k (B, H', Lk, Dg), unscaled; given_two_sided: .gates (B, H, Lq,
///           Lk).
/// Axioms:   promotes and suppresses, by at most softplus(beta); odd and increasing in g; the length scale does not
///           amplify it.
/// Numerics: softplus(beta) saturates at 2^96.
/// Cost:     2 Dg flops, one expm1 per pair.
/// Backends: all.
/// Source:   ours: the two-sided design that Principled Attention, section 3.2.2, names but does not choose.
/// Example:  docs/reference/operators.md
template <class Contraction>
struct basic_two_sided {
  static constexpr auto role = policy_role::gate;
  using contraction = Contraction;
  parameter beta = 0;  ///< strength softplus(beta); -inf switches the gate off

  constexpr basic_two_sided() = default;
  /// With beta = b.
  constexpr basic_two_sided(parameter b) : beta(b) {}
  static constexpr auto parameters() {
    return std::array{listed("beta", &basic_two_sided::beta, domain::real_or_minus_inf)};
  }

  template <class T>
  struct bound {
    T strength;  ///< softplus(beta) of the row, saturated
    ATTUNE_HD T gate(T const& s, T const& g) const {
      return math::select(strength == T(0), s, T(s + strength * math::tanh(T(T(0.5) * g))));
    }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {attune::saturated_softplus(r(beta))};
  }
};

/// The gate computed from its own projections, gate_q and gate_k.
using two_sided = basic_two_sided<contraction::gate_dot>;
/// The gate with g_ij computed by the caller.
using given_two_sided = basic_two_sided<contraction::given_gates>;

}  // namespace attune::gate
