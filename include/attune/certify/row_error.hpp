// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The parts of a row's bounds: a number with its bound, and errors during the computation of a row.
#pragma once

#include <cmath>
#include <limits>

#include <attune/certify/call_numbers.hpp>
#include <attune/certify/number_format.hpp>

namespace attune::certify {

/// One number of a result in double, and its error bound.
struct bounded_number {
  double value = 0;    ///< the result in double
  double bound = 0;    ///< every correct kernel is within this bound
  double drift = 0;    ///< part that may have one sign throughout: sums as random walks, and weights that round alike
  double scatter = 0;  ///< standard deviation of rounding to storage formats, independent per element
};

/// The bounds of a call.
using error_bounds = call_numbers<bounded_number>;

namespace detail {

/// Errors during the computation of a row: `walk` with sums as random walks, `worst` with sums in the worst order.
struct row_error {
  double walk = 0, worst = 0;
  void add(double x) {
    walk += x;
    worst += x;
  }
};
inline double magnitude(double x) { return std::isfinite(x) ? std::fabs(x) : 0; }
/// 0 times anything is 0: a quantity that does not change has no error.
inline double weighed(double factor, double change) {
  return factor == 0 || change == 0 ? 0 : std::fabs(factor * change);
}
/// std::fmax, which compilers call as a function, inline.
inline double larger(double x, double y) { return x > y || y != y ? x : y; }
/// The correction factor for a relative first-order error that is not small.
inline double grown(double relative) {
  double const x = std::fmin(relative, 50);
  return x > 1e-8 ? std::expm1(x) / x : 1;
}

/// A number that is rounded once more, to the format that stores it.
inline bounded_number stored_in(number_format const& to, bounded_number x) {
  if (!std::isfinite(x.value)) return x;
  double const rounding = to.unit * (magnitude(x.value) + x.bound) + to.step / 2;
  x.bound += rounding;
  x.scatter = std::hypot(x.scatter, rounding / std::sqrt(3.));
  if (magnitude(x.value) + x.bound > to.largest) x.bound = std::numeric_limits<double>::infinity();
  return x;
}

}  // namespace detail
}  // namespace attune::certify
