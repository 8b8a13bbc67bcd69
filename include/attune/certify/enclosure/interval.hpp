// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The functions of core/math.hpp for intervals, so that policies run on them (interval_number.hpp defines intervals).
// Every result contains the result of exact arithmetic. An undecided choice gives the hull of both sides.
#pragma once

#include <limits>

#include <attune/certify/enclosure/interval_number.hpp>
#include <attune/core/math.hpp>

namespace attune {

template <>
struct scalar<certify::interval> {
  using T = certify::interval;
  using mask = certify::decision;

  static T larger(T const& a, T const& b) { return T::larger(a, b); }
  static T smaller(T const& a, T const& b) { return T::smaller(a, b); }
  static T select(mask const& c, T const& a, T const& b) { return c.holds() ? a : c.fails() ? b : T::hull(a, b); }
  static bool any(mask const& c) { return c.may_hold; }
  static bool all(mask const& c) { return c.holds(); }
  static mask vanishes(T const& x) { return x == T(); }
  static constexpr int order = 0;
  static T infinity() { return T(std::numeric_limits<double>::infinity()); }
  /// Lower than any number that follows from doubles.
  static T lowest() {
    mpfr_t x;
    mpfr_init2(x, 64);
    mpfr_set_si_2exp(x, -1, 1L << 20, MPFR_RNDN);
    T const r = T::between(x, x);
    mpfr_clear(x);
    return r;
  }
  /// 0: tolerances are for scalars that round.
  static T epsilon() { return {}; }
  static T least() { return {}; }

  static T abs(T const& x) { return T::through(x, mpfi_abs); }
  static T exp(T const& x) { return T::through(x, mpfi_exp); }
  static T exp_nonpositive(T const& x) { return exp(x); }
  static T expm1(T const& x) { return T::through(x, mpfi_expm1); }
  static T log(T const& x) { return T::through_above(0, x, mpfi_log); }
  static T log1p(T const& x) { return T::through_above(-1, x, mpfi_log1p); }
  static T log1p_unit(T const& x) { return log1p(x); }
  static T sqrt(T const& x) { return T::through_above(0, x, mpfi_sqrt); }
  static T sin(T const& x) { return T::through(x, mpfi_sin); }
  static T cos(T const& x) { return T::through(x, mpfi_cos); }
  static T acos(T const& x) {
    if (!x.is_number()) return x;
    if (mpfr_cmp_si(x.upper(), -1) < 0 || mpfr_cmp_si(x.lower(), 1) > 0) return T::nan();
    if (mpfr_cmp_si(x.lower(), -1) < 0 || mpfr_cmp_si(x.upper(), 1) > 0) return T::unknown();
    return T::through(x, mpfi_acos);
  }
  static T erf(T const& x) { return T::through_rising(x, mpfr_erf); }
  static T floor(T const& x) {
    return T::through_rising(x,
                             [](mpfr_ptr to, mpfr_srcptr from, mpfr_rnd_t r) { return mpfr_rint_floor(to, from, r); });
  }
  static T pow(T const& x, T const& y) { return T::power(x, y); }
  static T two_over_sqrt_pi() { return T(2) / sqrt(acos(T(-1))); }
  static T tanh(T const& x) { return T::through(x, mpfi_tanh); }
  static T softplus(T const& x) { return detail::softplus(x); }
  static T sigmoid(T const& x) { return detail::sigmoid(x); }
  static T log1p_rate(T const& k, T const& x) { return detail::log1p_rate(k, x); }

  /// 0 times anything is 0 in the chain rule. If a factor may be 0, the product already contains 0.
  static T chained(T const& factor, T const& tangent) {
    return factor.is_zero() || tangent.is_zero() ? T() : factor * tangent;
  }
  /// (log(1 + z) - z / (1 + z)) / z^2 = sum_n (-z)^n (n + 1) / (n + 2). Computed by the quotient or, near 0 where that
  /// cancels, by the series. Its terms are below |z|^n in size, so the remainder after N terms is below |z|^N / (1 -
  /// |z|).
  static T log1p_curvature(T const& z) {
    T const one(1), size = abs(z);
    if (!z.is_number()) return z;
    if (!(size <= T(0.0625)).holds()) {
      T const total = one + z;
      return (log(total) - z / total) / (z * z);
    }
    T sum, power = one, tiny = one;
    long const bits = certify::detail::interval_bits();
    long n = 0;
    for (; 4 * n < bits + 8; ++n) {
      sum = sum + power * (T(n + 1) / T(n + 2));
      power = power * -z;
      tiny = tiny * size;
    }
    T const rest = tiny / (one - size);
    return sum + T::hull(-rest, rest);
  }
};

}  // namespace attune
