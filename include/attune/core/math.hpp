// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   y = attune::math::f(x)   for x a float, a double, a SIMD batch, a 50-digit number, ...
//
// The vocabulary of policies. Pointwise members of a policy are templates on the scalar and call only what stands
// here, so that one source runs everywhere. Functions dispatch on the trait scalar<T>, specialised once per kind of
// scalar: a qualified name does not see overloads declared later, and neither xsimd nor Boost brings ADL into attune.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include <attune/config.hpp>

namespace attune {

/// How attune computes with a kind of scalar. The primary template serves every number with `<`, `==` and the
/// elementary functions of namespace std or found by ADL (double, Boost.Multiprecision with expression templates off).
/// core/simd_math.hpp specialises it for xsimd::batch.
template <class T>
struct scalar {
  using mask = bool;  ///< what a comparison of two T gives

  ATTUNE_HD static T larger(T const& a, T const& b) { return a < b ? b : a; }
  ATTUNE_HD static T smaller(T const& a, T const& b) { return b < a ? b : a; }
  ATTUNE_HD static T select(bool c, T const& a, T const& b) { return c ? a : b; }
  ATTUNE_HD static T infinity() { return std::numeric_limits<T>::infinity(); }
  ATTUNE_HD_UNCHECKED static T abs(T const& x) {
    using std::abs;
    return T(abs(x));
  }
  ATTUNE_HD_UNCHECKED static T exp(T const& x) {
    using std::exp;
    return T(exp(x));
  }
  ATTUNE_HD_UNCHECKED static T expm1(T const& x) {
    using std::expm1;
    return T(expm1(x));
  }
  ATTUNE_HD_UNCHECKED static T log(T const& x) {
    using std::log;
    return T(log(x));
  }
  ATTUNE_HD_UNCHECKED static T log1p(T const& x) {
    using std::log1p;
    return T(log1p(x));
  }
  ATTUNE_HD_UNCHECKED static T sqrt(T const& x) {
    using std::sqrt;
    return T(sqrt(x));
  }
  /// exp(x) where x <= 0 is known (or x is NaN): the hot path of every normalizer.
  ATTUNE_HD static T exp_nonpositive(T const& x) { return exp(x); }
  /// log(1 + x) where 0 <= x <= 1 is known (or x is NaN).
  ATTUNE_HD static T log1p_unit(T const& x) { return log1p(x); }
};

namespace math {

/// The larger of a and b; on a tie, and where b is NaN, a (so a derivative taken through it is that of a).
template <class T>
ATTUNE_HD ATTUNE_INLINE T larger(T const& a, T const& b) {
  return scalar<T>::larger(a, b);
}

/// The smaller of a and b; on a tie, and where b is NaN, a.
template <class T>
ATTUNE_HD ATTUNE_INLINE T smaller(T const& a, T const& b) {
  return scalar<T>::smaller(a, b);
}

/// c ? a : b, lane by lane. Both sides are evaluated: a side not taken may hold NaN without harm.
template <class T>
ATTUNE_HD ATTUNE_INLINE T select(typename scalar<T>::mask const& c, T const& a, T const& b) {
  return scalar<T>::select(c, a, b);
}

template <class T>
ATTUNE_HD ATTUNE_INLINE T infinity() {
  return scalar<T>::infinity();
}
template <class T>
ATTUNE_HD ATTUNE_INLINE T abs(T const& x) {
  return scalar<T>::abs(x);
}
template <class T>
ATTUNE_HD ATTUNE_INLINE T exp(T const& x) {
  return scalar<T>::exp(x);
}
template <class T>
ATTUNE_HD ATTUNE_INLINE T expm1(T const& x) {
  return scalar<T>::expm1(x);
}
template <class T>
ATTUNE_HD ATTUNE_INLINE T log(T const& x) {
  return scalar<T>::log(x);
}
template <class T>
ATTUNE_HD ATTUNE_INLINE T log1p(T const& x) {
  return scalar<T>::log1p(x);
}
template <class T>
ATTUNE_HD ATTUNE_INLINE T sqrt(T const& x) {
  return scalar<T>::sqrt(x);
}

/// exp(x) for x <= 0: exact 0 at -inf, NaN at NaN, and the cheapest exponential there is. Undefined value for x > 0.
template <class T>
ATTUNE_HD ATTUNE_INLINE T exp_nonpositive(T const& x) {
  return scalar<T>::exp_nonpositive(x);
}

/// log(1 + e^x) = max(x, 0) + log1p(e^-|x|): no overflow, relative accuracy kept for x << 0 (where it is e^x, not 0).
template <class T>
ATTUNE_HD ATTUNE_INLINE T softplus(T const& x) {
  return larger(x, T(0)) + scalar<T>::log1p_unit(exp_nonpositive(T(-abs(x))));
}

/// 1 / (1 + e^-x) with full relative accuracy on both sides.
template <class T>
ATTUNE_HD ATTUNE_INLINE T sigmoid(T const& x) {
  T const e = exp_nonpositive(T(-abs(x)));
  return select(x < T(0), e, T(1)) / (T(1) + e);
}

/// tanh by expm1: relative accuracy kept near 0, no overflow.
template <class T>
ATTUNE_HD ATTUNE_INLINE T tanh(T const& x) {
  T const e = expm1(T(T(-2) * abs(x)));
  T const t = -e / (T(2) + e);
  return select(x < T(0), T(-t), t);
}

/// f * s, except that s = -inf stays -inf for every factor (a key switched off stays off when its factor is 0).
template <class T>
ATTUNE_HD ATTUNE_INLINE T scale_keeping_off(T const& f, T const& s) {
  return select(s == -infinity<T>(), s, T(f * s));
}

}  // namespace math
}  // namespace attune
