// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   share = error / bound      of a computed number, where the exact one is enclosed
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include <attune/certify/enclosure.hpp>
#include <attune/certify/error_bound.hpp>

namespace attune::certify {

/// How much of its bound a computed number uses: at least |computed - exact| / bound for the exact number somewhere in
/// the enclosure, so that more than 1 is a broken promise for certain. 0 for numbers that are not finite, where bounds
/// say nothing.
inline double used_share(double computed, enclosed_number const& exact, bounded_number const& promised) {
  if (!std::isfinite(exact.lower) || !std::isfinite(exact.upper) || !std::isfinite(promised.bound)) return 0;
  if (!std::isfinite(computed)) return std::numeric_limits<double>::infinity();
  // Differences of doubles round: by less than 2^-52 of themselves.
  double const error = std::max({0., exact.lower - computed, computed - exact.upper}) * (1 - 0x1p-50);
  return error == 0 ? 0 : error / promised.bound;
}

}  // namespace attune::certify
