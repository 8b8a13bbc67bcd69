// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   s_ij = 2 g <q_i, k_j> - g |k_j|^2 = -g |q_i - k_j|^2 + g |q_i|^2
#pragma once

#include <array>

#include <attune/policies/concepts.hpp>

namespace attune::kernel {

/// Formula:  s = g sum_d k_d (2 q_d - k_d)
/// Recovers: the weights of rbf with tau = 1 / g under a shift-invariant normalizer: only a row constant is dropped.
/// Requires: inputs .q and .k.
/// Axioms:   as rbf, up to the row constant g |q|^2.
/// Numerics: k (2 q - k) is formed feature by feature. Keys whose norms are large compared with their distances lose
///           digits: use rbf there, which is translation invariant.
/// Cost:     3 D flops per pair.
/// Backends: all.
/// Source:   Scalar Sort, related work (scaled RBF attention).
/// Example:  docs/reference/operators.md
struct scaled_rbf {
  /// The function of one query feature and one key feature.
  struct term {
    /// k (2 q - k).
    template <class T>
    ATTUNE_HD static T pair(T const& q, T const& k) {
      return k * ((q + q) - k);
    }
  };
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::elementwise<term>;
  parameter gamma = 1;  ///< g: multiplies the sum

  constexpr scaled_rbf() = default;
  /// With gamma = g.
  constexpr scaled_rbf(parameter g) : gamma(g) {}
  static constexpr auto parameters() { return std::array{listed("gamma", &scaled_rbf::gamma)}; }

  template <class T>
  struct bound {
    T gamma;  ///< g of the row
    ATTUNE_HD T score(T const& sum, key<T> const&) const { return gamma * sum; }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r(gamma)};
  }
};

}  // namespace attune::kernel
