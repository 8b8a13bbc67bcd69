// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   w_j = alpha p_j + (average - alpha) / N,   p = softmax(a)
#pragma once

#include <array>

#include <attune/policies/concepts.hpp>

namespace attune::normalizer {

/// The meaning of N in the uniform share of affine-scaled attention (the paper does not say).
enum class affine_count {
  visible,  ///< K of the row: sum w = average for every query
  total,    ///< Lk
};

/// Formula:  w = alpha p + (average - alpha) / N on visible keys, p = softmax(a), N = K or Lk
/// Recovers: softmax at alpha = average = 1; off-by-one's row sum at alpha = average = z / (1 + z).
/// Requires: alpha and average finite; alpha usually a projection of the layer's input with activation sigmoid or
///           linear_clipping, average a number kept by `moving_average`.
/// Axioms:   sum w = average if N = K; weights may be negative. The free form w = alpha p + beta / N (figure 1) is
///           free_affine.
/// Numerics: the share enters once per row as a multiple of the plain sum of visible values. A logit of -inf keeps its
///           share; all logits -inf: w = 0. average - alpha is rounded once: where |average| << |alpha| the sum of a
///           row is accurate to eps |alpha|, not to eps |average|.
/// Cost:     softmax and 2 Dv flops per pair for the plain value sum.
/// Backends: all.
/// Source:   Affine-Scaled Attention, equations 6 to 9.
/// Example:  docs/reference/operators.md
template <affine_count Count = affine_count::visible>
struct affine {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.weight_factor = true, .uniform_share = true};
  static constexpr bool exponential = true;  ///< earned(a, m) is e^(a - m)
  parameter alpha = 1,                       ///< the factor of the softmax weights
      average = 1;                           ///< the sum of the weights of a row if N = K

  static constexpr auto parameters() {
    return std::array{listed("alpha", &affine::alpha), listed("average", &affine::average)};
  }

  template <class T>
  struct bound {
    T alpha,      ///< alpha of the row
        average,  ///< average of the row
        total;    ///< Lk
    ATTUNE_HD T earned(T const& a, T const& m) const { return math::exp_nonpositive(T(a - m)); }
    /// alpha.
    ATTUNE_HD T weight_factor() const { return alpha; }
    /// (average - alpha) / N.
    ATTUNE_HD T uniform_share(T const&, T const& visible) const {
      return (average - alpha) / (Count == affine_count::visible ? visible : total);
    }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r(alpha), r(average), r.keys};
  }
};

/// Formula:  w = alpha p + beta / N, with beta as a separate parameter
/// Recovers: affine at beta = average - alpha.
/// Requires: alpha, beta finite.
/// Axioms:   sum w = alpha + beta if N = K.
/// Numerics: as affine.
/// Cost:     as affine.
/// Backends: all.
/// Source:   Affine-Scaled Attention, figure 1.
/// Example:  docs/reference/operators.md
template <affine_count Count = affine_count::visible>
struct free_affine {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.weight_factor = true, .uniform_share = true};
  static constexpr bool exponential = true;  ///< earned(a, m) is e^(a - m)
  parameter alpha = 1,                       ///< the factor of the softmax weights
      beta = 0;                              ///< the sum of the uniform shares of a row if N = K

  static constexpr auto parameters() {
    return std::array{listed("alpha", &free_affine::alpha), listed("beta", &free_affine::beta)};
  }

  template <class T>
  struct bound {
    T alpha,    ///< alpha of the row
        beta,   ///< beta of the row
        total;  ///< Lk
    ATTUNE_HD T earned(T const& a, T const& m) const { return math::exp_nonpositive(T(a - m)); }
    /// alpha.
    ATTUNE_HD T weight_factor() const { return alpha; }
    /// beta / N.
    ATTUNE_HD T uniform_share(T const&, T const& visible) const {
      return beta / (Count == affine_count::visible ? visible : total);
    }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r(alpha), r(beta), r.keys};
  }
};

}  // namespace attune::normalizer
