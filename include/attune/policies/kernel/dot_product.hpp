// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   s_ij = c <q_i, k_j>,   c = scale, by default 1 / sqrt(D)
#pragma once

#include <array>

#include <attune/policies/kernel/bound.hpp>

namespace attune::kernel {

/// Formula:  s = c <q, k>
/// Recovers: scaled dot-product attention (Vaswani et al. 2017) with the default scale.
/// Requires: inputs .q (B, H, Lq, D) and .k (B, Hk, Lk, D).
/// Axioms:   bilinear in (q, k).
/// Numerics: 1/sqrt(D) is computed in the executor's scalar, never stored rounded. Error of s at most (D + 2) u c
///           sum|q||k|.
/// Cost:     2 D flops per pair.
/// Backends: all.
/// Source:   all five papers; Principled Attention section 3.1 prints it without c (scale = 1).
/// Example:  docs/reference/policies.md
struct dot_product {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::dot;
  parameter scale;  ///< c; 1 / sqrt(D) if it is not set

  static constexpr auto parameters() { return std::array{listed("scale", &dot_product::scale)}; }

  template <class T>
  ATTUNE_HD bound_multiple<T> bind(row<T> const& r) const {
    return {r(scale, r.inverse_sqrt_width)};
  }
};

/// Formula:  s = <q, k> / tau
/// Recovers: dot_product with scale = 1 / tau; uniform weights as tau -> inf.
/// Requires: inputs .q and .k; tau > 0.
/// Axioms:   bilinear in (q, k).
/// Numerics: one division by tau, one rounding.
/// Cost:     2 D flops per pair.
/// Backends: all.
/// Source:   "Why softmax" (temperature of the maximum-entropy form); GOAT, named by Scalar Sort, related work.
/// Example:  docs/reference/operators.md
struct tempered_dot {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::dot;
  parameter tau = 1;  ///< temperature, > 0

  constexpr tempered_dot() = default;
  /// With tau = t.
  constexpr tempered_dot(parameter t) : tau(t) {}
  static constexpr auto parameters() { return std::array{listed("tau", &tempered_dot::tau, domain::positive)}; }

  template <class T>
  struct bound {
    T tau;  ///< the temperature of the row
    ATTUNE_HD T score(T const& dot, key<T> const&) const { return attune::detail::quotient(dot, tau); }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r(tau)};
  }
};

}  // namespace attune::kernel
