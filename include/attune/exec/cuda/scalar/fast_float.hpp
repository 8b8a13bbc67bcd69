// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   fast_float x:  a float whose exponentials, logarithms and reciprocals are the device's approximate instructions
//
// The scalar that policies run on in a tile. ex2, lg2 and rcp are right to about 2^-22 relative; numbers below 2^-126
// become 0. Policies are bound to rows in float, with exact functions: see bind_rows.hpp.
#pragma once

#include <cmath>
#include <type_traits>

#include <attune/core/math.hpp>
#include <attune/core/row.hpp>

namespace attune::exec_cuda {

namespace approximate {
inline constexpr float log2e = 1.4426950408889634f, ln2 = 0.6931471805599453f;

/// 2^x.
ATTUNE_HD ATTUNE_INLINE float ex2(float x) {
#if defined(__CUDA_ARCH__)
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return std::exp2(x);
#endif
}
/// log2(x).
ATTUNE_HD ATTUNE_INLINE float lg2(float x) {
#if defined(__CUDA_ARCH__)
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return std::log2(x);
#endif
}
/// 1 / x.
ATTUNE_HD ATTUNE_INLINE float rcp(float x) {
#if defined(__CUDA_ARCH__)
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return 1 / x;
#endif
}
/// a x + b, rounded once.
ATTUNE_HD ATTUNE_INLINE float fma(float a, float x, float b) { return ::fmaf(a, x, b); }
}  // namespace approximate

/// The scalar.
struct fast_float {
  float x;  ///< the number
  fast_float() = default;
  template <class N>
    requires std::is_arithmetic_v<N>
  ATTUNE_HD constexpr fast_float(N v) : x(float(v)) {}
  /// The number as a float.
  ATTUNE_HD constexpr explicit operator float() const { return x; }
  ATTUNE_HD friend fast_float operator-(fast_float a) { return -a.x; }
  ATTUNE_HD friend fast_float operator+(fast_float a, fast_float b) { return a.x + b.x; }
  ATTUNE_HD friend fast_float operator-(fast_float a, fast_float b) { return a.x - b.x; }
  ATTUNE_HD friend fast_float operator*(fast_float a, fast_float b) { return a.x * b.x; }
  ATTUNE_HD friend fast_float operator/(fast_float a, fast_float b) { return a.x * approximate::rcp(b.x); }
  ATTUNE_HD friend bool operator<(fast_float a, fast_float b) { return a.x < b.x; }
  ATTUNE_HD friend bool operator>(fast_float a, fast_float b) { return a.x > b.x; }
  ATTUNE_HD friend bool operator<=(fast_float a, fast_float b) { return a.x <= b.x; }
  ATTUNE_HD friend bool operator>=(fast_float a, fast_float b) { return a.x >= b.x; }
  ATTUNE_HD friend bool operator==(fast_float a, fast_float b) { return a.x == b.x; }
  ATTUNE_HD friend bool operator!=(fast_float a, fast_float b) { return a.x != b.x; }
};

}  // namespace attune::exec_cuda

namespace attune {

/// Functions of fast_float. `larger` keeps a NaN in its first argument.
template <>
struct scalar<exec_cuda::fast_float> {
  using S = exec_cuda::fast_float;
  using exact = scalar<float>;
  using mask = bool;
  static constexpr int order = 0;
  ATTUNE_HD static S larger(S a, S b) { return a.x < b.x ? b : a; }
  ATTUNE_HD static S smaller(S a, S b) { return b.x < a.x ? b : a; }
  ATTUNE_HD static S select(bool c, S a, S b) { return c ? a : b; }
  ATTUNE_HD static S infinity() { return detail::limits<float>::infinity; }
  ATTUNE_HD static S lowest() { return detail::limits<float>::lowest; }
  ATTUNE_HD static S epsilon() { return detail::limits<float>::epsilon; }
  ATTUNE_HD static S least() { return detail::limits<float>::least; }
  ATTUNE_HD static bool any(bool c) { return c; }
  ATTUNE_HD static bool all(bool c) { return c; }
  ATTUNE_HD static bool vanishes(S a) { return a.x == 0; }
  ATTUNE_HD static S zero_if_finite(S a) { return a.x - a.x; }
  ATTUNE_HD static S abs(S a) { return ::fabsf(a.x); }
  ATTUNE_HD static S floor(S a) { return ::floorf(a.x); }
  ATTUNE_HD static S sqrt(S a) { return ::sqrtf(a.x); }
  ATTUNE_HD static S binade(S a) { return exact::binade(a.x); }
  ATTUNE_HD static S exp(S a) { return exec_cuda::approximate::ex2(a.x * exec_cuda::approximate::log2e); }
  ATTUNE_HD static S exp_nonpositive(S a) { return exp(a); }
  ATTUNE_HD static S log(S a) { return exec_cuda::approximate::lg2(a.x) * exec_cuda::approximate::ln2; }
  ATTUNE_HD static S log1p_unit(S a) { return log(S(1.f + a.x)); }
  ATTUNE_HD static S two_over_sqrt_pi() { return 1.12837916709551257f; }
  /// e^a - 1, right to about 2^-23 of the larger of e^a and 1.
  ATTUNE_HD static S expm1(S a) { return exp(a).x - 1.f; }
  ATTUNE_HD static S log1p(S a) { return exact::log1p(a.x); }
  ATTUNE_HD static S sin(S a) { return exact::sin(a.x); }
  ATTUNE_HD static S cos(S a) { return exact::cos(a.x); }
  ATTUNE_HD static S acos(S a) { return exact::acos(a.x); }
  ATTUNE_HD static S erf(S a) { return exact::erf(a.x); }
  ATTUNE_HD static S pow(S a, S b) { return exact::pow(a.x, b.x); }
  /// max(a, 0) + log(1 + e^-|a|), to about 2^-22 absolute. The maximum may drop a NaN: the logarithm has it too.
  ATTUNE_HD static S softplus(S a) { return S(::fmaxf(a.x, 0.f)) + log1p_unit(exp(-abs(a))); }
  ATTUNE_HD static S sigmoid(S a) { return exec_cuda::approximate::rcp(1.f + exp(-a).x); }
  /// 1 - 2 / (1 + e^2a): right to about 2^-22 absolute.
  ATTUNE_HD static S tanh(S a) {
    return exec_cuda::approximate::fma(-2.f, exec_cuda::approximate::rcp(1.f + exp(a + a).x), 1.f);
  }
  ATTUNE_HD static S log1p_rate(S k, S a) { return detail::log1p_rate(k, a); }
};

/// Numbers of policies are read as floats.
template <>
struct lift<exec_cuda::fast_float> {
  using S = exec_cuda::fast_float;
  ATTUNE_HD S value(parameter const& p, row_place const& at) const {
    return p.template value<float>(at.batch, at.head, at.query);
  }
  ATTUNE_HD S entry(table const& x, index_t b, index_t h, index_t i, index_t d) const { return float(x(b, h, i, d)); }
  ATTUNE_HD table_entries<S> entries(table const& x, row_place const& at, index_t i) const { return {x, at, i}; }
  ATTUNE_HD static S constant(double x) { return float(x); }
};

}  // namespace attune
