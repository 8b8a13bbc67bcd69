// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   s_ij = -(q_i - k_j)^2 / tau      s_ij = -|q_i - k_j| / tau      s_ij = q_i - k_j      with one number per position
#pragma once

#include <array>

#include <attune/policies/kernel/bound.hpp>

namespace attune::kernel {

/// Formula:  s = -(q - k)^2 / tau, q and k one number per position
/// Recovers: uniform weights as tau -> inf; the nearest key as tau -> 0, ties shared equally.
/// Requires: inputs .sort_q (B, H, Lq, 1) and .sort_k (B, H', Lk, 1); tau > 0. A value head may serve several of these
///           heads.
/// Axioms:   translation invariant; depends only on positions on a line, so that a cache can be sorted by them.
/// Numerics: the difference is exact to half an ulp; the error of s is 2 u |s|.
/// Cost:     3 flops per pair.
/// Backends: all.
/// Source:   Scalar Sort, section 3. With a dot product it is the hybrid kernel: dot_product{} + scalar_sort{tau}.
/// Example:  docs/reference/operators.md
struct scalar_sort {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::scalar_difference;
  parameter tau = 1;  ///< divides the squared difference, > 0

  constexpr scalar_sort() = default;
  /// With tau = t.
  constexpr scalar_sort(parameter t) : tau(t) {}
  static constexpr auto parameters() { return std::array{listed("tau", &scalar_sort::tau, domain::positive)}; }

  template <class T>
  struct bound {
    T tau;  ///< tau of the row
    ATTUNE_HD T score(T const& e, key<T> const&) const { return -attune::detail::quotient(T(e * e), tau); }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r(tau)};
  }
};

/// Formula:  s = -|q - k| / tau, q and k one number per position
/// Recovers: uniform weights as tau -> inf; the nearest key as tau -> 0.
/// Requires: inputs .sort_q and .sort_k; tau > 0.
/// Axioms:   translation invariant; factorizes on each side of the query (exact O(n log n) evaluation is possible).
/// Numerics: derivative 0 at q = k.
/// Cost:     3 flops per pair.
/// Backends: all.
/// Source:   ours; the Laplacian counterpart of Scalar Sort, section 3.
/// Example:  docs/reference/operators.md
struct scalar_laplacian {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::scalar_difference;
  parameter tau = 1;  ///< divides the difference, > 0

  constexpr scalar_laplacian() = default;
  /// With tau = t.
  constexpr scalar_laplacian(parameter t) : tau(t) {}
  static constexpr auto parameters() { return std::array{listed("tau", &scalar_laplacian::tau, domain::positive)}; }

  template <class T>
  struct bound {
    T tau;  ///< tau of the row
    ATTUNE_HD T score(T const& e, key<T> const&) const { return -attune::detail::quotient(math::abs(e), tau); }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r(tau)};
  }
};

/// Formula:  s = q - k, q and k one number per position: the score for the sliced ReLU normalizers
///           (normalizer/generic.hpp)
/// Recovers: nothing by itself.
/// Requires: inputs .sort_q and .sort_k.
/// Axioms:   antisymmetric.
/// Numerics: one rounding.
/// Cost:     1 flop per pair.
/// Backends: all.
/// Source:   Sliced ReLU attention, named by Scalar Sort, related work.
/// Example:  docs/reference/operators.md
struct scalar_difference {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::scalar_difference;

  template <class T>
  ATTUNE_HD bound_identity<T> bind(row<T> const&) const {
    return {};
  }
};

}  // namespace attune::kernel
