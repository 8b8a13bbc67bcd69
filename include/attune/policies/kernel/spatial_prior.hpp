// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   s_ij = -sum_x ((place_jx - center_ix) / spread_ix)^2 / beta
#pragma once

#include <array>

#include <attune/policies/concepts.hpp>

namespace attune::kernel {

/// Formula:  s = -sum over axes ((place_j - center_i) / spread_i)^2 / beta: the log of a Gaussian window around a
///           predicted center
/// Recovers: no prior as beta or the spread grows; on one axis with spread 1 it is scalar_sort with tau = beta.
/// Requires: inputs .center, .spread (B, H, Lq, A) and .place (B, H', Lk, A); beta > 0; spreads other than 0.
/// Axioms:   translation invariant.
/// Numerics: differences are divided by the spread before they are squared, so spread^2 cannot overflow.
/// Cost:     3 A flops per pair.
/// Backends: all.
/// Source:   SMCA (Gao et al. 2021), named by Scalar Sort, related work.
/// Example:  docs/reference/operators.md
struct spatial_prior {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::spatial_distance;
  parameter beta = 1;  ///< divides the squared distance, > 0

  constexpr spatial_prior() = default;
  /// With beta = b.
  constexpr spatial_prior(parameter b) : beta(b) {}
  static constexpr auto parameters() { return std::array{listed("beta", &spatial_prior::beta, domain::positive)}; }

  template <class T>
  struct bound {
    T beta;  ///< beta of the row
    ATTUNE_HD T score(T const& distance, key<T> const&) const { return -attune::detail::quotient(distance, beta); }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r(beta)};
  }
};

}  // namespace attune::kernel
