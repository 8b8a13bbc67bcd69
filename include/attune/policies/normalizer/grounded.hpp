// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   w_j = e^{a_j} / z,   w0 = sum_{a_j < gamma} (e^gamma - e^{a_j}) / z,   z = sum_j e^{max(gamma, a_j)}
#pragma once

#include <array>

#include <attune/policies/concepts.hpp>

namespace attune::normalizer {

/// Formula:  w = e^a / z, w0 = sum over a < gamma of (e^gamma - e^a) / z, z = sum e^max(gamma, a), out = sum w v + w0
///           v0
/// Recovers: softmax as gamma -> -inf (gamma = -inf included), and whenever every logit reaches gamma.
/// Requires: input .v0 (1|B, 1|H, 1|Lq, Dv); zeros<T>(Dv) for none.
/// Axioms:   sum w + w0 = 1; w0 increases with gamma; invariant when logits and gamma shift together. The mass that a
///           key lacks below e^gamma goes to the ground, so K keys with logit -inf give w0 = 1.
/// Numerics: the ground mass of a key is -e^(gamma - m) expm1(a - gamma), because the printed e^gamma - e^a and the
///           form 1 - sum w cancel. A key at a = gamma counts as above. gamma = +inf: w0 = 1. gamma = -inf: plain
///           softmax, also when all logits are -inf (w0 = 0, out = 0); no visible key: w0 = 1, out = v0.
/// Cost:     one exponential and one expm1 per pair. State: (m, earned, ground) and the value sum.
/// Backends: all.
/// Source:   Principled Attention, sections 3.1 and 3.2.3.
/// Example:  docs/reference/policies.md
struct grounded {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.ground_mass = true, .ground_value = true};
  static constexpr bool exponential = true;  ///< earned(a, m) is e^(a - m)
  /// ground(a, m) is max(e^(g - m) - e^(a - m), 0), where g is lowest_reference().
  static constexpr bool fills_to_level = true;
  parameter gamma = 0;  ///< ground level, a logit; -inf: softmax, +inf: w0 = 1

  constexpr grounded() = default;
  /// With gamma = g.
  constexpr grounded(parameter g) : gamma(g) {}
  static constexpr auto parameters() { return std::array{listed("gamma", &grounded::gamma, domain::extended)}; }

  template <class T>
  struct bound {
    T level;  ///< gamma of the row, without the row constant
    ATTUNE_HD T earned(T const& a, T const& m) const { return math::exp_nonpositive(T(a - m)); }
    /// The mass that a key with logit a gives to the ground: (e^gamma - e^a) e^-m where a < gamma, else 0.
    ATTUNE_HD T ground(T const& a, T const& m) const {
      T const unit = math::select(level == math::infinity<T>(), T(1), math::exp_nonpositive(T(level - m)));
      return math::select(a < level, T(-unit * math::expm1(T(a - level))), T(0));
    }
    /// gamma: the running maximum of the row never goes below it.
    ATTUNE_HD T lowest_reference() const { return level; }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r.logit(gamma)};
  }
};

}  // namespace attune::normalizer
