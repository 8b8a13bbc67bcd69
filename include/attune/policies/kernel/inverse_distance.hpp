// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   s_ij = -log(eps + |q_i - k_j|^2)      so that softmax weights are proportional to 1 / (eps + |q_i - k_j|^2)
#pragma once

#include <array>

#include <attune/policies/concepts.hpp>

namespace attune::kernel {

/// Formula:  s = -log(eps + |q - k|^2)
/// Recovers: uniform weights as eps -> inf; the nearest key as eps -> 0 if a key equals the query.
/// Requires: inputs .q and .k; eps > 0.
/// Axioms:   translation invariant; heavy tails: weights decay like 1 / distance^2.
/// Numerics: the distance is computed from differences; one logarithm per pair.
/// Cost:     3 D flops and one logarithm per pair.
/// Backends: all.
/// Source:   Scalar Sort, related work (inverse-distance weighting).
/// Example:  docs/reference/operators.md
struct inverse_distance {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::squared_distance;
  parameter eps = 1;  ///< added to the squared distance, > 0

  constexpr inverse_distance() = default;
  /// With eps = e.
  constexpr inverse_distance(parameter e) : eps(e) {}
  static constexpr auto parameters() { return std::array{listed("eps", &inverse_distance::eps, domain::positive)}; }

  template <class T>
  struct bound {
    T eps;  ///< eps of the row
    ATTUNE_HD T score(T const& distance, key<T> const&) const { return -math::log(T(eps + distance)); }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r(eps)};
  }
};

}  // namespace attune::kernel
