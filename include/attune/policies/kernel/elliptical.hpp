// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   s_ij = c sum_d m_d q_id k_jd      s_ij = -c/2 sum_d m_d (q_id - k_jd)^2
#pragma once

#include <array>

#include <attune/policies/kernel/bound.hpp>

namespace attune::kernel {

/// Formula:  s = c sum_d m_d q_d k_d, c = 1 / sqrt(D) by default
/// Recovers: the scaled dot product at m = 1.
/// Requires: inputs .q and .k; table metric (1|B, 1|H, 1, D).
/// Axioms:   bilinear in (q, k), linear in m.
/// Numerics: the query is multiplied by m once per row.
/// Cost:     2 D flops per pair.
/// Backends: all.
/// Source:   Scalar Sort, section 8, as printed there (the text says Mahalanobis: see `elliptical` below).
/// Example:  docs/reference/operators.md
struct bilinear {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::metric_dot;
  table metric;     ///< m: (1|B, 1|H, 1, D)
  parameter scale;  ///< c; 1 / sqrt(D) if it is not set

  constexpr bilinear() = default;
  /// With metric m and scale c.
  constexpr bilinear(table m, parameter c = {}) : metric(m), scale(c) {}
  static constexpr auto parameters() { return std::array{listed("scale", &bilinear::scale)}; }
  static constexpr auto tables() { return std::array{listed("metric", &bilinear::metric, table_width::query_row)}; }

  template <class T>
  ATTUNE_HD bound_multiple<T> bind(row<T> const& r) const {
    return {r(scale, r.inverse_sqrt_width)};
  }
};

/// Formula:  s = -c/2 sum_d m_d (q_d - k_d)^2, c = 1 / sqrt(D) by default: a Mahalanobis distance with a diagonal
///           metric
/// Recovers: rbf with tau = 2 / c at m = 1; the weights of bilinear where sum_d m_d k_d^2 is the same for all keys.
/// Requires: inputs .q and .k; table metric (1|B, 1|H, 1, D).
/// Axioms:   translation invariant; s <= 0 for m >= 0.
/// Numerics: computed from differences, as rbf.
/// Cost:     4 D flops per pair.
/// Backends: all.
/// Source:   Elliptical Attention (Nielsen et al. 2024), named by Scalar Sort, section 8.
/// Example:  docs/reference/operators.md
struct elliptical {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::metric_distance;
  table metric;     ///< m: (1|B, 1|H, 1, D)
  parameter scale;  ///< c; 1 / sqrt(D) if it is not set

  constexpr elliptical() = default;
  /// With metric m and scale c.
  constexpr elliptical(table m, parameter c = {}) : metric(m), scale(c) {}
  static constexpr auto parameters() { return std::array{listed("scale", &elliptical::scale)}; }
  static constexpr auto tables() { return std::array{listed("metric", &elliptical::metric, table_width::query_row)}; }

  template <class T>
  ATTUNE_HD bound_multiple<T> bind(row<T> const& r) const {
    return {T(T(-0.5) * r(scale, r.inverse_sqrt_width))};
  }
};

}  // namespace attune::kernel
