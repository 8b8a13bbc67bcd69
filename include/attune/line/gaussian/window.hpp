// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   keys with (q - k)^2 / tau > d^2 + log n - log eps  have less than the share eps of a row's mass,
//       d = nearest distance / sqrt(tau)
//
// Windows on a line of keys, and proven bounds on the keys outside.
#pragma once

#include <algorithm>
#include <limits>

#include <attune/core/math.hpp>
#include <attune/policies/kernel/scalar.hpp>

namespace attune::line::detail {

/// Beyond this many sqrt(tau) from a query, n keys have at most the share e^log_share of the mass of the nearest key,
/// which is `away` sqrt(tau) away. Includes a margin for the rounding of this number.
ATTUNE_HD inline double window_reach(double away, double n, double log_share) {
  return math::sqrt(away * away + math::log(n) - log_share) * (1 + 1e-12);
}

/// Bound on the mass of the sorted keys k[0 .. n) outside [lo, hi) for a query at q, relative to e^log_unit. Uses only
/// counts and nearest keys.
ATTUNE_HD inline double mass_outside(kernel::scalar_sort::bound<double> const& kernel, double q, double const* k,
                                     index_t n, index_t lo, index_t hi, double log_unit) {
  key<double> const any{0.0};
  double mass = 0;
  if (lo > 0) mass += double(lo) * math::exp(kernel.score(q - k[lo - 1], any) - log_unit);
  if (hi < n) mass += double(n - hi) * math::exp(kernel.score(q - k[hi], any) - log_unit);
  return mass;
}

/// Effect of rounding on the sums of `count` single pairs, as a share of the row's mass, to first order. A score of
/// size |s| is accurate to 3 units in the last place; `farthest` is the largest |s|.
ATTUNE_HD inline double rounding_of_pairs(index_t count, double farthest) {
  return 0x1p-53 * (double(count) + 64 + 6 * farthest);
}

}  // namespace attune::line::detail
