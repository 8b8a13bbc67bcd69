// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   a = s + kappa (s - gamma),   kappa = softplus(alpha) log K
#pragma once

#include <array>

#include <attune/policies/concepts.hpp>
#include <attune/policies/saturated_softplus.hpp>

namespace attune::length_scale {

/// Formula:  a = s + kappa (s - gamma), kappa = softplus(alpha) log K, K the number of visible keys of the row
/// Recovers: no length scale as alpha -> -inf (alpha = -inf included), and at K = 1.
/// Requires: alpha finite or -inf; gamma anything but NaN.
/// Axioms:   affine and increasing in s; s = gamma is a fixed point; under a shift-invariant normalizer gamma has no
///           effect on weights, only on the lse.
/// Numerics: the text-book form gamma + (1 + kappa)(s - gamma) loses s when |gamma| is huge. A moderate gamma is used
///           as in the formula. A large gamma goes into the row constant -kappa gamma instead of the logits, so that
///           the logits keep all digits of s at any gamma. softplus(alpha) saturates at 2^96. gamma = +-inf contributes
///           no row constant (the normalizer sees the infinity itself).
/// Cost:     2 flops per pair.
/// Backends: all.
/// Source:   Principled Attention, section 3.2.1 and equation of the amplified score.
/// Example:  docs/reference/policies.md
struct margin {
  static constexpr auto role = policy_role::length_scale;
  static constexpr length_scale_traits traits{.row_constant = true};
  parameter alpha = 0,  ///< strength softplus(alpha); -inf switches the length scale off
      gamma = 0;        ///< the score that does not change

  static constexpr auto parameters() {
    return std::array{listed("alpha", &margin::alpha, domain::real_or_minus_inf),
                      listed("gamma", &margin::gamma, domain::extended)};
  }

  template <class T>
  struct bound {
    T kappa,         ///< softplus(alpha) log K
        level_near,  ///< the part of gamma that is subtracted from each score
        constant;    ///< the row constant: -kappa times the rest of gamma
    ATTUNE_HD T scale(T const& s) const { return math::select(kappa == T(0), s, T(s + kappa * (s - level_near))); }
    /// c of a = scale(s) + c.
    ATTUNE_HD T row_constant() const { return constant; }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    T const level = r(gamma), zero(0);
    // Subtracting gamma first is accurate while gamma lies among the scores. It loses digits of s when |gamma| is much
    // larger.
    T const level_near = math::select(math::abs(level) <= T(32), level, zero);
    T const level_far = math::select(math::abs(level) < math::infinity<T>(), T(level - level_near), zero);
    T const kappa = saturated_softplus(r(alpha)) * r.log_visible;
    // If even the row constant overflows, every finite score is far below gamma. The formula as written then gives
    // -inf.
    auto const reachable = kappa * level_far < math::infinity<T>();
    return {kappa, math::select(reachable, level_near, level), math::select(reachable, T(-kappa * level_far), zero)};
  }
};

}  // namespace attune::length_scale
