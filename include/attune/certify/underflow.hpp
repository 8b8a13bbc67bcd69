// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   e_j (1 +- eps) +- flushed       the computed value of a mass, and of the factor of a gate
//
// The loss of masses that count as 0. It matters where the result is multiplied
// by more than is usual for a weight: by the place of a self-adjusted logit, by the reciprocal of masses that are all
// small, by a cotangent.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <attune/certify/number_format.hpp>
#include <attune/exec/reference/row.hpp>

namespace attune::certify::detail {

/// Masses, slopes and factors of gates below this number may become 0: twice attune's least weight (core/math.hpp), or
/// in 16-bit arithmetic twice the smallest normal number. The CPU's exponential gives up below the square root of 1/2
/// of it.
constexpr double flushed_below(number_format const& of) { return of.unit > 0x1p-24 ? 2 * of.least : 0x1p31 * of.least; }

/// The largest factor that multiplies a mass of the row in a weight or in the slope of a weight, and at least 1.
template <class Normalizer, class Bound>
double weight_per_mass(Bound const& normalizer, attune::detail::visible_keys<double> const& seen,
                       attune::detail::weighed_row<double> const& w, double visible) {
  double most = 1;
  auto const meet = [&](double x) {
    if (std::isfinite(x)) most = std::fmax(most, std::fabs(x));
  };
  if constexpr (Normalizer::traits.family == row_family::masses) {
    auto const factor = [&](double earned) {
      return finish_masses<Normalizer>(normalizer, w.reference, earned, w.ground, visible).value_factor;
    };
    meet(factor(w.earned));
    if constexpr (OffersWeightFactorOfSums<Normalizer>) {  // the relative slope of the factor, on either side
      double const step = 0x1p-20 * std::fmax(std::fabs(w.earned), (std::numeric_limits<double>::min)());
      for (double side : {-step, step}) meet((factor(w.earned + side) / factor(w.earned) - 1) / step);
    }
  } else if constexpr (Normalizer::traits.family == row_family::range_weighted) {
    auto const ends = normalizer.ends(w.lowest, w.highest);
    double const range = std::fabs(ends.high - ends.low);
    if (range != 0)
      for (double a : seen.logits) meet((1 + std::fabs(a - ends.low)) / range);
  }
  return most;
}

/// Error bound of a weight, or of its slope, if each mass of its row has an error of up to `loss`. The bound has two
/// parts. The key's own mass adds `of_mass`; the normalizer adds `of_sum` times the weight. Both are infinite if the
/// normalizer may be 0.
struct weight_loss {
  double of_mass = 0, of_sum = 0;

  weight_loss(double loss, double weight_per_mass, double keys) {
    // The mass of a ground or a sink counts as one more key.
    double const share = loss * weight_per_mass * (keys + 1), left = std::fmax(0, 1 - share);
    of_mass = loss * weight_per_mass / left;
    of_sum = share / left;
  }
};

}  // namespace attune::certify::detail
