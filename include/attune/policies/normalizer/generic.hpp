// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   w_j = F(a_j),   F(a_j) / K   or   F(a_j) / sum F
#pragma once

#include <attune/policies/concepts.hpp>

namespace attune::normalizer {

/// Formula:  w = F(a), F(a) / K or F(a) / sum F(a), by `Divisor` (one, count, sum)
/// Recovers: softmax with F = exp and divisor sum (for moderate logits: F is not shifted), sigmoid, ReLU, ...
/// Requires: F a stateless type with `template <class T> static T map(T const& logit)` written in attune::math,
///           branch-free.
/// Axioms:   the same as for F. Divisor sum and no key with mass: out = 0, lse = -inf.
/// Numerics: masses are not relative to a maximum: F must not overflow on the logits in use. With divisor sum, a sum
///           below the smallest normal number counts as zero mass (docs/reference/contracts.md).
/// Cost:     one evaluation of F per pair.
/// Backends: all.
/// Source:   "Limits of normalization", equation 3 (general F); the way to add your own normalizer.
/// Example:  docs/reference/policies.md#normalizers
template <class F, divisor Divisor = divisor::sum>
struct generic {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.divided_by = Divisor, .reference = mass_reference::none};

  template <class T>
  struct bound {
    T shift;  ///< the row constant of the length scale: F gets the true logit
    ATTUNE_HD T earned(T const& a, T const&) const { return F::map(T(a + shift)); }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r.logit_shift};
  }
};

namespace map {
/// e^a, not shifted.
struct exponential {
  /// e^a.
  template <class T>
  ATTUNE_HD static T map(T const& a) {
    return math::exp(a);
  }
};
/// max(a, 0), derivative 0 at a = 0.
struct relu {
  /// max(a, 0); NaN at NaN.
  template <class T>
  ATTUNE_HD static T map(T const& a) {
    return math::select(a > T(0), a, math::select(a == a, T(0), a));
  }
};
}  // namespace map

/// Formula:  w = e^a: unnormalized Gaussian attention (SOFT, Skyformer) with the rbf kernel
using exponential = generic<map::exponential, divisor::one>;
/// Formula:  w = max(a, 0): sliced ReLU attention with kernel::scalar_difference
using relu = generic<map::relu, divisor::one>;
/// Formula:  w = max(a, 0) / K
using mean_relu = generic<map::relu, divisor::count>;
/// Formula:  w = max(a, 0) / sum max(a, 0), 0 where that sum is 0
using normalized_relu = generic<map::relu, divisor::sum>;

/// Formula:  w = (F(a) - mean F) / K
/// Recovers: mean_relu for values that sum to 0.
/// Requires: F as for generic.
/// Axioms:   sum w = 0: invariant when a constant is added to all values.
/// Numerics: the mean is subtracted from the value sum once per row, using the plain sum of visible values.
/// Cost:     one evaluation of F and an additional 2 Dv flops per pair.
/// Backends: all.
/// Source:   Sliced ReLU attention (centered form), named by Scalar Sort, related work.
/// Example:  docs/reference/operators.md
template <class F>
struct centered {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{
      .divided_by = divisor::count, .reference = mass_reference::none, .uniform_share = true};

  template <class T>
  struct bound {
    T shift;  ///< the row constant of the length scale: F gets the true logit
    ATTUNE_HD T earned(T const& a, T const&) const { return F::map(T(a + shift)); }
    /// -(mean F) / K, with earned = sum F and visible = K.
    ATTUNE_HD T uniform_share(T const& earned, T const& visible) const { return -(earned / visible / visible); }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r.logit_shift};
  }
};
/// Formula:  w = (max(a, 0) - mean max(a, 0)) / K
using centered_relu = centered<map::relu>;

}  // namespace attune::normalizer
