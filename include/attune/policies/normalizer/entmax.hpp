// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   w_j = [(alpha - 1) a_j - tau]_+^(1 / (alpha - 1)),   tau such that sum w = 1
#pragma once

#include <array>

#include <attune/policies/candidates.hpp>

namespace attune::normalizer {

/// Formula:  w = [a - tau]_+, sum w = 1
/// Recovers: entmax at alpha = 2; a single key where its logit leads by 1 or more.
/// Requires: nothing.
/// Axioms:   shift invariant; sum w = 1; weights are exactly 0 at and below the threshold; equal logits share equally.
/// Numerics: threshold to 1e-14 (double), 1e-6 (float) of a - max a, by a compensated sum. A logit exactly on the
///           threshold has weight 0 and is outside the support (also for derivatives). All logits -inf: as no visible
///           key. Keys outside the support are never read into a result. Output .threshold is tau.
/// Cost:     softmax and a few passes over the row's logits, which stay in cache.
/// State:    candidate set: the logits above the threshold; merging is exact.
/// Backends: all that keep a candidate set.
/// Source:   Martins & Astudillo 2016, named by "Limits of normalization", section 4.
/// Example:  docs/reference/operators.md
struct sparsemax {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.family = row_family::sparse_support, .threshold = threshold_rule::sum};

  template <class T>
  ATTUNE_HD attune::detail::bound_deformed<attune::detail::linear_exponential, T> bind(row<T> const& r) const {
    return {T(1), r.logit_shift};
  }
};

/// Formula:  w = [a / 2 - tau]_+^2, sum w = 1: entmax at alpha = 3/2, evaluated without a power
/// Recovers: entmax at alpha = 3/2.
/// Requires: nothing.
/// Axioms:   as sparsemax.
/// Numerics: as sparsemax, for a / 2.
/// Cost:     as sparsemax.
/// State:    candidate set.
/// Backends: all that keep a candidate set.
/// Source:   Peters et al. 2019, named by "Limits of normalization", section 4.
/// Example:  docs/reference/operators.md
struct entmax15 {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.family = row_family::sparse_support, .threshold = threshold_rule::sum};

  template <class T>
  ATTUNE_HD attune::detail::bound_deformed<attune::detail::square_exponential, T> bind(row<T> const& r) const {
    return {T(0.5), r.logit_shift};
  }
};

/// Formula:  w = [(alpha - 1) a - tau]_+^(1 / (alpha - 1)), sum w = 1
/// Recovers: softmax at alpha = 1 (exactly: the limit form is used), sparsemax at alpha = 2.
/// Requires: 1 <= alpha <= 4, shared, per head or per query.
/// Axioms:   shift invariant; sum w = 1; support shrinks as alpha grows; equal logits share equally.
/// Numerics: evaluated in units of the logits, so that nothing cancels as alpha -> 1; this holds for the gradient by
///           alpha too. For alpha > 2 the derivative w^(2 - alpha) of a key grows without bound as its weight vanishes,
///           and so does the effect of rounding on weights near 0. Otherwise as sparsemax.
/// Cost:     one logarithm and one exponential per pair and iteration, about six of them.
/// State:    candidate set.
/// Backends: all that keep a candidate set.
/// Source:   Peters et al. 2019; gradient by alpha: Correia et al. 2019; named by "Limits of normalization", section 4.
/// Example:  docs/reference/operators.md
struct entmax {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.family = row_family::sparse_support, .threshold = threshold_rule::sum};
  parameter alpha = 1.5;  ///< in [1, 4]: 1 is softmax, 2 is sparsemax

  constexpr entmax() = default;
  /// With alpha = a.
  constexpr entmax(parameter a) : alpha(a) {}
  static constexpr auto parameters() { return std::array{listed("alpha", &entmax::alpha, domain::one_to_four)}; }

  template <class T>
  ATTUNE_HD attune::detail::bound_deformed<attune::detail::deformed_exponential, T> bind(row<T> const& r) const {
    return {T(r(alpha) - T(1)), r.logit_shift};
  }
};

}  // namespace attune::normalizer
