// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   tau = min(softplus(x), cap),   L_tau = sum_h log(1 + tau_h)
//
// A learned temperature that stays positive, and a penalty that keeps it small: a head with a narrow bandwidth reads
// few keys.
#pragma once

#include <limits>
#include <span>

#include <attune/analysis/regularizer/checks.hpp>

namespace attune::regularizer {

/// A temperature learned without constraint: tau = softplus(x), at most `cap` (+inf: no cap).
/// Gradient: d tau / d x = sigmoid(x) where softplus(x) <= cap, else exactly 0. Beyond the cap only a regularizer of x
///           itself can bring a temperature back: learning stops at a hard cap.
/// Numerics: full relative accuracy for x << 0, where tau = e^x; 0 below the smallest number (x < -745 in double),
///           which no kernel accepts.
/// Source:   Scalar Sort, "Tau regularization".
template <class T>
struct temperature {
  T cap = math::infinity<T>();  ///< the largest temperature; +inf: no cap

  /// tau = min(softplus(x), cap)
  T value(T const& x) const { return math::smaller(math::softplus(x), cap); }
  /// d tau / d x
  T slope(T const& x) const { return math::softplus(x) <= cap ? math::sigmoid(x) : T(0); }
  /// The x of a temperature tau > 0: log(e^tau - 1). Use it to start at a given bandwidth.
  static T inverse(T const& tau) {
    if (!(tau > T(0)) || !detail::is_finite(tau))
      throw error("regularizer::temperature::inverse", "tau", attune::detail::text("the value ", double(tau)),
                  "a finite number > 0");
    return tau + math::log(T(-math::expm1(T(-tau))));
  }
};

/// L_tau = sum_h log(1 + tau_h) over the temperatures of all heads.
/// Gradient: added to `d` (empty: none), times `by`: by / (1 + tau). For small temperatures it is `by`, like the
///           gradient of a linear penalty. It vanishes for large ones: the pull is weakest where a temperature is
///           largest (the paper says the opposite).
/// Errors:   throws attune::error if a temperature is not >= 0 and finite, or if `d` has another size; then nothing is
///           written.
/// Source:   Scalar Sort, "Tau regularization".
template <class T>
T temperature_penalty(std::span<T const> tau, std::span<T> d = {}, T const& by = T(1)) {
  char const* const name = "regularizer::temperature_penalty";
  if (!d.empty() && d.size() != tau.size())
    throw error(name, "d", attune::detail::text(d.size(), " elements"),
                attune::detail::text(tau.size(), ", one per temperature"));
  for (std::size_t h = 0; h < tau.size(); ++h)
    if (!(tau[h] >= T(0)) || !detail::is_finite(tau[h]))
      throw error(name, "tau", attune::detail::text("the value ", double(tau[h]), " at ", h), "finite numbers >= 0");
  T loss(0);
  for (std::size_t h = 0; h < tau.size(); ++h) {
    loss = loss + math::log1p(tau[h]);
    if (!d.empty()) d[h] = d[h] + by / (T(1) + tau[h]);
  }
  return loss;
}

}  // namespace attune::regularizer
