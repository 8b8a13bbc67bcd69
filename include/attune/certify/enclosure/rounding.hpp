// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   y = nearest(x, format)  the correctly rounded number in fp64, fp32, fp16 or bf16, including subnormal numbers and
//                           overflow
//
// Rounds once, to nearest, ties to even. Storing a double in 16 bits by way of float rounds twice, and gives a
// different result about once in several thousand million cases.
#pragma once

#include <cmath>
#include <limits>

#include <attune/certify/enclosure/interval.hpp>
#include <attune/certify/number_format.hpp>

namespace attune::certify {

/// The number of a format nearest to a number of MPFR. Zeros are positive.
inline double nearest(mpfr_srcptr x, storage s) {
  if (mpfr_nan_p(x)) return std::numeric_limits<double>::quiet_NaN();
  if (mpfr_zero_p(x)) return 0;
  double const infinite = std::copysign(std::numeric_limits<double>::infinity(), mpfr_sgn(x));
  if (mpfr_inf_p(x)) return infinite;
  number_format const format = format_of(s);
  // x = m 2^e with 1/2 <= m < 1; the numbers around it are multiples of 2^step.
  long const e = long(mpfr_get_exp(x)), step = (std::max)(e + std::ilogb(format.unit), long(std::ilogb(format.step)));
  if (e > std::ilogb(format.largest) + 2) return infinite;
  mpfr_t y;
  mpfr_init2(y, mpfr_get_prec(x) + 1);
  mpfr_mul_2si(y, x, -step, MPFR_RNDN);
  mpfr_rint(y, y, MPFR_RNDN);
  mpfr_mul_2si(y, y, step, MPFR_RNDN);
  double const r = mpfr_get_d(y, MPFR_RNDN);
  mpfr_clear(y);
  return std::fabs(r) > format.largest ? infinite : r == 0 ? 0 : r;
}

/// The information that an interval gives about one number of a result.
struct enclosed_number {
  /// Doubles with the exact value between them. NaN if the value is certainly NaN; -inf and +inf if nothing is known.
  double lower = 0,
         upper = 0;  ///< see `lower`
  /// The correctly rounded result if `decided`, else the simplest number of the enclosure, rounded.
  double rounded = 0;
  /// Both ends round to the same number of the format.
  bool decided = true;
  /// Not decided, but with 1,000 bits the value cannot be distinguished from the point half-way between two numbers.
  /// `rounded` is the even one of these.
  bool half_way = false;
};

/// Rounds the exact value, which lies in x, to a format.
inline enclosed_number enclosed(interval const& x, storage format) {
  constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  if (x.is_nan()) return {nan, nan, nan, true, false};
  if (!x.is_number()) return {-infinity, infinity, nan, false, false};
  double const lower = nearest(x.lower(), format), upper = nearest(x.upper(), format);
  enclosed_number r{mpfr_get_d(x.lower(), MPFR_RNDD), mpfr_get_d(x.upper(), MPFR_RNDU), lower, lower == upper, false};
  if (r.decided) return r;
  r.rounded = nearest(x.is_finite() ? x.simplest().lower() : x.lower(), format);
  if (x.is_finite() && !x.may_be_zero()) {
    interval const width = interval::between(x.upper(), x.upper()) - interval::between(x.lower(), x.lower());
    r.half_way = (width < scalar<interval>::abs(x) * interval(0x1p-1000)).holds();
  }
  return r;
}

}  // namespace attune::certify
