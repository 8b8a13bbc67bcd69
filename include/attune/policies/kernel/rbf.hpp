// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   s_ij = -|q_i - k_j|^2 / tau      s_ij = -c |q_i - k_j|^2
#pragma once

#include <array>

#include <attune/policies/concepts.hpp>

namespace attune::kernel {

/// Formula:  s = -|q - k|^2 / tau
/// Recovers: softmax of 2 <q, k> / tau where all keys have the same norm (ledger N01).
/// Requires: inputs .q (B, H, Lq, D) and .k (B, Hk, Lk, D); tau > 0.
/// Axioms:   invariant under a common translation of queries and keys; s <= 0, with 0 only at q = k.
/// Numerics: the distance is a sum of squared differences. The form |q|^2 - 2 qk + |k|^2 is not used: it cancels when
///           the norms are large.
/// Cost:     3 D flops per pair.
/// Backends: all.
/// Source:   Scalar Sort, related work (RBF kernels); "Why softmax" for the equal-norm identity.
/// Example:  docs/reference/operators.md
struct rbf {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::squared_distance;
  parameter tau = 1;  ///< divides the squared distance, > 0

  constexpr rbf() = default;
  /// With tau = t.
  constexpr rbf(parameter t) : tau(t) {}
  static constexpr auto parameters() { return std::array{listed("tau", &rbf::tau, domain::positive)}; }

  template <class T>
  struct bound {
    T tau;  ///< tau of the row
    ATTUNE_HD T score(T const& distance, key<T> const&) const { return -attune::detail::quotient(distance, tau); }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r(tau)};
  }
};

/// Formula:  s = -c |q - k|^2, c = scale, by default 1 / sqrt(D)
/// Recovers: rbf with tau = 1 / c.
/// Requires: inputs .q and .k.
/// Axioms:   as rbf.
/// Numerics: as rbf; 1/sqrt(D) is computed in the executor's scalar.
/// Cost:     3 D flops per pair.
/// Backends: all.
/// Source:   L2 attention (Kim et al. 2021), named by Scalar Sort, related work.
/// Example:  docs/reference/operators.md
struct l2 {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::squared_distance;
  parameter scale;  ///< c; 1 / sqrt(D) if it is not set

  static constexpr auto parameters() { return std::array{listed("scale", &l2::scale)}; }

  template <class T>
  struct bound {
    T c;  ///< the scale of the row
    ATTUNE_HD T score(T const& distance, key<T> const&) const { return -(c * distance); }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r(scale, r.inverse_sqrt_width)};
  }
};

}  // namespace attune::kernel
