// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   e_j (1 +- eps) +- 2 least       what is computed of a mass, and of the factor of a gate
//
// What exponentials lose near the least normal number of the arithmetic. It matters where it is multiplied by more than
// is usual of a
// weight: by the place of a self-adjusted logit, by the reciprocal of masses that are all small, by a cotangent.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <attune/exec/reference/row.hpp>

namespace attune::certify::detail {

/// Masses and gates below this many least normal numbers may be 0: the CPU's exponential is from sqrt 2 of them down.
constexpr double flushed = 2;

/// The most that a mass of the row is multiplied with on its way into a weight, or into the slope of a weight; 1 if
/// that is more.
template <class Normalizer, class Bound>
double weight_per_mass(Bound const& normalizer, attune::detail::visible_keys<double> const& seen,
                       attune::detail::weighed_row<double> const& w, double visible) {
  double most = 1;
  auto const meet = [&](double x) {
    if (std::isfinite(x)) most = std::fmax(most, std::fabs(x));
  };
  if constexpr (Normalizer::traits.family == row_family::masses) {
    meet(finish_masses<Normalizer>(normalizer, w.reference, w.earned, w.ground, visible).value_factor);
  } else if constexpr (Normalizer::traits.family == row_family::range_weighted) {
    auto const ends = normalizer.ends(w.lowest, w.highest);
    double const range = std::fabs(ends.high - ends.low);
    if (range != 0)
      for (double a : seen.logits) meet((1 + std::fabs(a - ends.low)) / range);
  }
  return most;
}

/// What a weight, or its slope, may be off by where each mass of its row is off by `loss`: `of_mass` for its own mass,
/// and `of_sum` times itself for what the row is divided by. Infinite where that may be lost altogether.
struct weight_loss {
  double of_mass = 0, of_sum = 0;

  weight_loss(double loss, double weight_per_mass, double keys) {
    // A ground's or a sink's mass is one more.
    double const share = loss * weight_per_mass * (keys + 1), left = std::fmax(0, 1 - share);
    of_mass = loss * weight_per_mass / left;
    of_sum = share / left;
  }
};

}  // namespace attune::certify::detail
