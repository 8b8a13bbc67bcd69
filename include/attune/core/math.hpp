// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   y = attune::math::f(x)   for x a float, a double, a SIMD batch, a 50-digit number, ...
//
// The functions that policies may call. Pointwise members of a policy are templates on the scalar and call only these
// functions, so that one source runs everywhere. Functions dispatch on the trait scalar<T>, which is specialized once
// per kind of scalar: a qualified name does not see overloads declared later, and neither xsimd nor Boost brings ADL
// into attune.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <attune/config.hpp>
#include <attune/core/limits.hpp>

namespace attune {

namespace detail {
template <class T>
ATTUNE_HD ATTUNE_INLINE T softplus(T const& x);
template <class T>
ATTUNE_HD ATTUNE_INLINE T sigmoid(T const& x);
template <class T>
ATTUNE_HD ATTUNE_INLINE T tanh(T const& x);
template <class T>
ATTUNE_HD ATTUNE_INLINE T log1p_rate(T const& k, T const& x);

#if ATTUNE_FINITE_MATH_
/// True if x is neither NaN nor infinite, by its bits: with -ffinite-math-only, comparisons of numbers cannot tell.
template <class T>
ATTUNE_INLINE bool has_finite_bits(T const& x) {
  using bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  bits const infinity = std::bit_cast<bits>(std::numeric_limits<T>::infinity());
  return (std::bit_cast<bits>(x) & infinity) != infinity;
}
#endif
}  // namespace detail

/// How attune computes with a kind of scalar. The primary template serves every number with `<`, `==` and the
/// elementary functions of namespace std or found by ADL (double, Boost.Multiprecision with expression templates off).
/// core/simd_math.hpp specializes it for xsimd::batch.
template <class T>
struct scalar {
  using mask = bool;  ///< the result of comparing two T

  ATTUNE_HD static T larger(T const& a, T const& b) { return a < b ? b : a; }      ///< see math::larger
  ATTUNE_HD static T smaller(T const& a, T const& b) { return b < a ? b : a; }     ///< see math::smaller
  ATTUNE_HD static T select(bool c, T const& a, T const& b) { return c ? a : b; }  ///< see math::select
  /// +inf.
  ATTUNE_HD_UNCHECKED static T infinity() {
    if constexpr (std::is_floating_point_v<T>)
#if ATTUNE_FINITE_MATH_
      return as_computed(detail::limits<T>::infinity);
#else
      return detail::limits<T>::infinity;
#endif
    else
      return std::numeric_limits<T>::infinity();
  }
  /// The lowest finite number.
  ATTUNE_HD_UNCHECKED static T lowest() {
    if constexpr (std::is_floating_point_v<T>)
      return detail::limits<T>::lowest;
    else
      return std::numeric_limits<T>::lowest();
  }
  /// The distance from 1 to the next larger number.
  ATTUNE_HD_UNCHECKED static T epsilon() {
    if constexpr (std::is_floating_point_v<T>)
      return detail::limits<T>::epsilon;
    else
      return std::numeric_limits<T>::epsilon();
  }
  /// The smallest positive normal number.
  ATTUNE_HD_UNCHECKED static T least() {
    if constexpr (std::is_floating_point_v<T>)
      return detail::limits<T>::least;
    else
      return (std::numeric_limits<T>::min)();
  }
  /// The power of two at or below x, for a positive normal x. Multiplying or dividing by it does not round.
  ATTUNE_HD_UNCHECKED static T binade(T const& x) {
    using std::frexp;
    using std::ldexp;
    int exponent = 0;
    static_cast<void>(frexp(x, &exponent));
    return T(ldexp(T(1), exponent - 1));
  }
  /// True if the comparison holds in any lane. For loops that run until all lanes are done, never for a choice.
  ATTUNE_HD static bool any(bool c) { return c; }
  /// True if the comparison certainly holds in all lanes (an interval may be undecided). For work that may then be
  /// skipped, if doing it anyway is also correct.
  ATTUNE_HD static bool all(bool c) { return c; }
  /// Exactly 0 and constant: a product with it has derivative 0.
  ATTUNE_HD static bool vanishes(T const& x) { return x == T(0); }
  /// 0 where x is finite; NaN or another number where it is not.
  ATTUNE_HD ATTUNE_INLINE static T zero_if_finite(T const& x) {
#if ATTUNE_FINITE_MATH_
    if constexpr (std::is_floating_point_v<T>) return detail::has_finite_bits(x) ? T(0) : T(1);
#endif
    return x - as_computed(x);  // compilers do not simplify this to 0
  }
  /// x as computed: opaque to the compiler, which rearranges nothing across it (-fassociative-math).
  ATTUNE_HD_UNCHECKED ATTUNE_INLINE static T as_computed(T const& x) {
#if defined(__GNUC__) && !defined(__CUDA_ARCH__)
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
      T y = x;
#if defined(__SSE2_MATH__)
      asm("" : "+x"(y));
#elif defined(__aarch64__)
      asm("" : "+w"(y));
#else
      asm("" : "+m"(y));
#endif
      return y;
    }
#endif
    return x;
  }
  /// Nesting depth of dual numbers: fixed-point iterations need that many additional steps.
  static constexpr int order = 0;
  /// |x|.
  ATTUNE_HD_UNCHECKED static T abs(T const& x) {
    using std::abs;
    return T(abs(x));
  }
  /// e^x.
  ATTUNE_HD_UNCHECKED static T exp(T const& x) {
    using std::exp;
    return T(exp(x));
  }
  /// e^x - 1, without cancellation near 0.
  ATTUNE_HD_UNCHECKED static T expm1(T const& x) {
    using std::expm1;
    return T(expm1(x));
  }
  /// The natural logarithm: -inf at 0, NaN for x < 0.
  ATTUNE_HD_UNCHECKED static T log(T const& x) {
    using std::log;
    return T(log(x));
  }
  /// log(1 + x), without loss of digits near 0: -inf at -1, NaN for x < -1.
  ATTUNE_HD_UNCHECKED static T log1p(T const& x) {
    using std::log1p;
    return T(log1p(x));
  }
  /// The square root: NaN for x < 0.
  ATTUNE_HD_UNCHECKED static T sqrt(T const& x) {
    using std::sqrt;
    return T(sqrt(x));
  }
  /// A call, not inlined: on a device, sine includes the reduction of large angles, and a series needs dozens of them.
  ATTUNE_HD_UNCHECKED ATTUNE_DEVICE_CALL static T sin(T const& x) {
    using std::sin;
    return T(sin(x));
  }
  /// The cosine of an angle in radians. Like sin, a call on a device.
  ATTUNE_HD_UNCHECKED ATTUNE_DEVICE_CALL static T cos(T const& x) {
    using std::cos;
    return T(cos(x));
  }
  /// The angle in [0, pi] whose cosine is x; NaN outside [-1, 1].
  ATTUNE_HD_UNCHECKED ATTUNE_DEVICE_CALL static T acos(T const& x) {
    using std::acos;
    return T(acos(x));
  }
  /// The error function.
  ATTUNE_HD_UNCHECKED ATTUNE_DEVICE_CALL static T erf(T const& x) {
    using std::erf;
    return T(erf(x));
  }
  /// x^y, as the C library defines it.
  ATTUNE_HD_UNCHECKED ATTUNE_DEVICE_CALL static T pow(T const& x, T const& y) {
    using std::pow;
    return T(pow(x, y));
  }
  /// The largest integer not above x.
  ATTUNE_HD_UNCHECKED static T floor(T const& x) {
    using std::floor;
    return T(floor(x));
  }
  /// 2 / sqrt(pi), the slope of erf at 0.
  ATTUNE_HD_UNCHECKED static T two_over_sqrt_pi() {
    if constexpr (std::is_floating_point_v<T>)
      return T(1.12837916709551257389616);
    else
      return T(2) / sqrt(acos(T(-1)));
  }
  /// exp(x) where x <= 0 is known (or x is NaN): the hot path of every normalizer. Numbers that are not of the machine
  /// have no least weight.
  ATTUNE_HD static T exp_nonpositive(T const& x) { return zero_if_tiny(exp(x)); }
  /// x, or 0 where |x| is below the least weight.
  ATTUNE_HD static T zero_if_tiny(T const& x) {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
      return x < detail::least_weight<T> && x > -detail::least_weight<T> ? T(0) : x;
    else
      return x;
  }
  /// log(1 + x) where 0 <= x <= 1 is known (or x is NaN).
  ATTUNE_HD static T log1p_unit(T const& x) { return log1p(x); }
  // Composites for which dual numbers have their own derivative rules (core/dual.hpp).
  ATTUNE_HD static T softplus(T const& x) { return detail::softplus(x); }  ///< log(1 + e^x)
  ATTUNE_HD static T sigmoid(T const& x) { return detail::sigmoid(x); }    ///< 1 / (1 + e^-x)
  ATTUNE_HD static T tanh(T const& x) { return detail::tanh(x); }          ///< the hyperbolic tangent
  ATTUNE_HD static T log1p_rate(T const& k, T const& x) { return detail::log1p_rate(k, x); }  ///< log(1 + k x) / k
};

namespace math {

/// The larger of a and b; on a tie, and where b is NaN, a (so the derivative is taken from a).
template <class T>
ATTUNE_HD ATTUNE_INLINE T larger(T const& a, T const& b) {
  return scalar<T>::larger(a, b);
}

/// The smaller of a and b; on a tie, and where b is NaN, a.
template <class T>
ATTUNE_HD ATTUNE_INLINE T smaller(T const& a, T const& b) {
  return scalar<T>::smaller(a, b);
}

/// c ? a : b, lane by lane. Both sides are evaluated: NaN in the side not taken does no harm.
template <class T>
ATTUNE_HD ATTUNE_INLINE T select(typename scalar<T>::mask const& c, T const& a, T const& b) {
  return scalar<T>::select(c, a, b);
}

/// +inf as a T; in a SIMD batch, +inf in every lane.
template <class T>
ATTUNE_HD ATTUNE_INLINE T infinity() {
  return scalar<T>::infinity();
}

/// 0 where x is finite; NaN or another number where it is not.
template <class T>
ATTUNE_HD ATTUNE_INLINE T zero_if_finite(T const& x) {
  if constexpr (requires { scalar<T>::zero_if_finite(x); })
    return scalar<T>::zero_if_finite(x);
  else
    return x - x;
}

/// x. No compiler simplifies arithmetic across it, whatever its flags: for sums that rely on rounding.
template <class T>
ATTUNE_HD ATTUNE_INLINE T as_computed(T const& x) {
  if constexpr (requires { scalar<T>::as_computed(x); })
    return scalar<T>::as_computed(x);
  else
    return x;
}
/// |x|. Its derivative at 0 is 0.
template <class T>
ATTUNE_HD ATTUNE_INLINE T abs(T const& x) {
  return scalar<T>::abs(x);
}
/// e^x: +inf on overflow, 0 at -inf, NaN at NaN. In a SIMD batch 0 instead of a subnormal number.
template <class T>
ATTUNE_HD ATTUNE_INLINE T exp(T const& x) {
  return scalar<T>::exp(x);
}
/// e^x - 1, without cancellation near 0: -1 at -inf.
template <class T>
ATTUNE_HD ATTUNE_INLINE T expm1(T const& x) {
  return scalar<T>::expm1(x);
}
/// The natural logarithm: -inf at 0, NaN for x < 0.
template <class T>
ATTUNE_HD ATTUNE_INLINE T log(T const& x) {
  return scalar<T>::log(x);
}
/// log(1 + x), without loss of digits near 0: -inf at -1, NaN for x < -1.
template <class T>
ATTUNE_HD ATTUNE_INLINE T log1p(T const& x) {
  return scalar<T>::log1p(x);
}
/// The square root: NaN for x < 0.
template <class T>
ATTUNE_HD ATTUNE_INLINE T sqrt(T const& x) {
  return scalar<T>::sqrt(x);
}

/// exp(x) for x <= 0: exact 0 at -inf, NaN at NaN, 0 where a weight counts as 0
/// (core/tiny.hpp). The cheapest exponential. Undefined value for x > 0.
template <class T>
ATTUNE_HD ATTUNE_INLINE T exp_nonpositive(T const& x) {
  return scalar<T>::exp_nonpositive(x);
}

/// log(1 + e^x) = max(x, 0) + log1p(e^-|x|): no overflow; relative accuracy holds for x << 0 (where it is e^x, not 0).
template <class T>
ATTUNE_HD ATTUNE_INLINE T softplus(T const& x) {
  return scalar<T>::softplus(x);
}

/// 1 / (1 + e^-x) with full relative accuracy on both sides.
template <class T>
ATTUNE_HD ATTUNE_INLINE T sigmoid(T const& x) {
  return scalar<T>::sigmoid(x);
}

/// tanh by expm1: relative accuracy holds near 0; no overflow.
template <class T>
ATTUNE_HD ATTUNE_INLINE T tanh(T const& x) {
  return scalar<T>::tanh(x);
}

/// log(1 + k x) / k for k >= 0 and 1 + k x > 0, and its limit x at k = 0: the logarithm of the deformed exponential (1
/// + k x)^(1/k) of entmax. NaN or -inf where 1 + k x <= 0.
template <class T>
ATTUNE_HD ATTUNE_INLINE T log1p_rate(T const& k, T const& x) {
  return scalar<T>::log1p_rate(k, x);
}

/// The sine of an angle in radians, of any size; NaN at an infinity. For the error bounds of sin, cos, acos, erf, pow
/// and floor, see docs/reference/policies.md.
template <class T>
ATTUNE_HD ATTUNE_INLINE T sin(T const& x) {
  return scalar<T>::sin(x);
}
/// The cosine of an angle in radians, of any size; NaN at an infinity.
template <class T>
ATTUNE_HD ATTUNE_INLINE T cos(T const& x) {
  return scalar<T>::cos(x);
}
/// The angle in [0, pi] whose cosine is x; NaN outside [-1, 1]. Its derivative is -inf at both ends.
template <class T>
ATTUNE_HD ATTUNE_INLINE T acos(T const& x) {
  return scalar<T>::acos(x);
}
/// 2 / sqrt(pi) times the integral of exp(-t^2) over [0, x].
template <class T>
ATTUNE_HD ATTUNE_INLINE T erf(T const& x) {
  return scalar<T>::erf(x);
}
/// x^y as the C library defines it: x < 0 needs an integer y (else NaN); pow(x, 0) and pow(1, y) are 1 for every x and
/// y. The derivative by y is x^y log(x): NaN for x < 0, 0 for x = 0.
template <class T>
ATTUNE_HD ATTUNE_INLINE T pow(T const& x, T const& y) {
  return scalar<T>::pow(x, y);
}
/// The largest integer not above x, exactly. Its derivative is 0.
template <class T>
ATTUNE_HD ATTUNE_INLINE T floor(T const& x) {
  return scalar<T>::floor(x);
}

/// Logits below this value count as -inf: additive masks of the type's lowest number, and sums with them. It is a
/// quarter of the lowest number, so that differences of logits above it do not overflow.
template <class T>
ATTUNE_HD ATTUNE_INLINE T lowest_logit() {
  return scalar<T>::lowest() / T(4);
}

/// f * s, except that s = -inf stays -inf for every factor (a key switched off stays off when its factor is 0).
template <class T>
ATTUNE_HD ATTUNE_INLINE T scale_keeping_off(T const& f, T const& s) {
  return select(s == -infinity<T>(), s, T(f * s));
}

}  // namespace math

}  // namespace attune

#include <attune/core/composites.hpp>
