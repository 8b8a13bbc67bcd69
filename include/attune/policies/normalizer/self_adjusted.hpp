// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   w_j = (a_j - low) / (high - low) p_j,   p = softmax(a)
#pragma once

#include <attune/policies/concepts.hpp>

namespace attune::normalizer {

/// Three interpretations of "self-adjusted softmax".
enum class adjusted_form {
  product,     ///< w = a p:                           low = 0, high = 1
  with_zero,   ///< low = min(min a, 0), high = max(max a, 0): the normalized form of Zheng et al. 2025
  full_range,  ///< low = min a, high = max a
};
/// Whether gradients pass through the extreme logits.
enum class adjusted_ends { differentiated, detached };

/// Formula:  w = (a - low) / (high - low) softmax(a), low and high from the extreme finite logits by `Form`
/// Recovers: softmax where the factor is 1 for the keys that matter (one key far above all others).
/// Requires: nothing.
/// Axioms:   sum w <= 1, not 1; weights of form product may be negative. high = low (one key, all logits equal): w = 0.
/// Numerics: values are summed with weights (a - max a) p and p, so that keys far below the maximum, however low, cost
///           no accuracy. The weight of the lowest key is a difference: it may be -u instead of 0. If several keys
///           share an extreme logit, the first gets the gradient. A logit of -inf has weight 0 and is not an extreme.
/// Cost:     one exponential and 4 Dv flops per pair.
/// Backends: all.
/// Source:   Self-adjusted softmax (Zheng et al. 2025), named by "Limits of normalization", section 4, without a
///           formula.
/// Example:  docs/reference/operators.md
template <adjusted_form Form, adjusted_ends Ends = adjusted_ends::differentiated>
struct self_adjusted {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.family = row_family::range_weighted,
                                            .detached_ends = Ends == adjusted_ends::detached};

  template <class T>
  struct bound {
    T shift;  ///< logits exclude the row constant; the ends refer to the true logits
    /// The two ends, from the lowest and the highest finite logit of the row.
    ATTUNE_HD adjustment<T> ends(T const& lowest, T const& highest) const {
      T const zero = -shift;
      if constexpr (Form == adjusted_form::product)
        return {zero, T(T(1) - shift)};
      else if constexpr (Form == adjusted_form::with_zero)
        return {math::smaller(lowest, zero), math::larger(highest, zero)};
      else
        return {lowest, highest};
    }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r.logit_shift};
  }
};

}  // namespace attune::normalizer
