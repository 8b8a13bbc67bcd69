// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What the bounds of a row are made of: one number and its bound, errors while a row is worked out.
#pragma once

#include <cmath>

#include <attune/certify/call_numbers.hpp>

namespace attune::certify {

/// What one number of a result may be off by, and the number itself in double.
struct bounded_number {
  double value = 0;
  double bound = 0;  ///< every correct kernel is within it
  double drift = 0;  ///< the part that may have one sign throughout, with sums taken as random walks: no storage in it
  double scatter = 0;  ///< standard deviation of what rounding to storage formats adds, independently per element
};

/// The bounds of a call.
using error_bounds = call_numbers<bounded_number>;

namespace detail {

/// Errors of a row while it is worked out: `walk` with sums as random walks, `worst` with sums in the worst order.
struct row_error {
  double walk = 0, worst = 0;
  void add(double x) {
    walk += x;
    worst += x;
  }
};
inline double magnitude(double x) { return std::isfinite(x) ? std::fabs(x) : 0; }
/// 0 times anything is 0: what does not move has no error.
inline double weighed(double factor, double change) {
  return factor == 0 || change == 0 ? 0 : std::fabs(factor * change);
}
/// What a relative error of first order becomes when it is not small.
inline double grown(double relative) {
  double const x = std::fmin(relative, 50);
  return x > 1e-8 ? std::expm1(x) / x : 1;
}

}  // namespace detail
}  // namespace attune::certify
