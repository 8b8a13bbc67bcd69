// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   |A(E + x) - A(E) - A'(E) x|,  |x| <= error
//
// The distance of the factor of a row's weights from its tangent, where the factor depends on the sum of the masses. A
// kink within the error of the sum, as in 1 / max(|E|, 1), counts in full.
#pragma once

#include <cmath>
#include <vector>

#include <attune/operators/row_state.hpp>

namespace attune::certify::detail {

/// sum |e_j|, where a normalizer may depend on a sum of masses of both signs; else |E|, the same number.
template <class Normalizer, class Bound>
double terms_of_sum([[maybe_unused]] Bound const& normalizer, [[maybe_unused]] std::vector<double> const& logits,
                    [[maybe_unused]] double reference, double earned) {
  if constexpr (OffersWeightFactorOfSums<Normalizer>) {
    double sum = 0;
    for (double a : logits) sum += std::fabs(normalizer.earned(a, reference));
    return sum;
  } else {
    return std::fabs(earned);
  }
}

/// The largest distance at the ends and in the middle of either side, for masses as they are (reference 0). `slope` is
/// A'(E). Right for factors that are linear, or of one curvature, on either side of a kink. 0 if the
/// normalizer has no such factor.
template <class Normalizer, class Bound>
double bend_of_factor([[maybe_unused]] Bound const& normalizer, [[maybe_unused]] double earned,
                      [[maybe_unused]] double ground, [[maybe_unused]] double slope, [[maybe_unused]] double visible,
                      [[maybe_unused]] double error) {
  double most = 0;
  if constexpr (OffersWeightFactorOfSums<Normalizer>) {
    auto const factor = [&](double e) {
      return finish_masses<Normalizer>(normalizer, 0.0, e, ground, visible).value_factor;
    };
    double const here = factor(earned);
    if (!std::isfinite(here) || !std::isfinite(error)) return 0;  // nor is the row finite
    for (double x : {-error, -error / 2, error / 2, error})
      most = std::fmax(most, std::fabs(factor(earned + x) - here - slope * x));
  }
  return most;
}

}  // namespace attune::certify::detail
