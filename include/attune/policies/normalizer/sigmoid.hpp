// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   w_j = sigma(a_j + b),   b = -log K by default
#pragma once

#include <array>

#include <attune/policies/concepts.hpp>

namespace attune::normalizer {

/// Formula:  w = sigma(a + b); b = -log K if it is not set
/// Recovers: uniform weights of sum K / (K + 1) at a = 0 and b = -log K; softmax's ratios where a + b << 0.
/// Requires: nothing.
/// Axioms:   keys do not compete: each weight lies in (0, 1) and depends on its own logit only; no lse and no ground
///           weight.
/// Numerics: full relative accuracy on both sides. A logit of +inf has weight 1, of -inf weight 0.
/// Cost:     one exponential and one division per pair.
/// Backends: all.
/// Source:   Sigmoid attention (Ramapuram et al. 2024); the five papers do not discuss it.
/// Example:  docs/reference/operators.md
struct sigmoid {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.divided_by = divisor::one, .reference = mass_reference::none};
  parameter bias;  ///< b; -log K if it is not set

  constexpr sigmoid() = default;
  /// With bias = b.
  constexpr sigmoid(parameter b) : bias(b) {}
  static constexpr auto parameters() { return std::array{listed("bias", &sigmoid::bias)}; }

  template <class T>
  struct bound {
    T bias;  ///< b of the row plus the row constant of the length scale
    ATTUNE_HD T earned(T const& a, T const&) const { return math::sigmoid(T(a + bias)); }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    // The bias is added to the true logits, so the row constant of the length scale is added back.
    return {T(r(bias, T(-r.log_visible)) + r.logit_shift)};
  }
};

}  // namespace attune::normalizer
