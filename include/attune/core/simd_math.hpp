// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   scalar<xsimd::batch<T, Arch>>   the elementary functions of attune on a SIMD register, T = float or double
//
// exp(x) = 2^n e^f,  n = round(x / ln 2),  f = x - n ln 2 in [-ln 2 / 2, ln 2 / 2],  e^f = 1 + f + f^2 Q(f).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include <attune/config.hpp>
#include <attune/core/math.hpp>
#include <attune/core/xsimd.hpp>

namespace attune::simd {

/// The constants of the functions, one set per format. Every polynomial is listed low order first.
///   anchor  1.5 * 2^mantissa_bits: adding it to a number rounds that number to an integer, kept in the lowest bits.
///   ln2     in two parts; the first has so few bits that its product with n is exact even without FMA.
///   q       (e^f - 1 - f) / f^2 on [-ln 2 / 2, ln 2 / 2], minimax for the relative error of f + f^2 q against e^f - 1:
///           2^-26.0 and 2^-55.1 (for e^f itself 2^-27.3 and 2^-56.4).
///   l       (log(1 + x) - x) / x^2 on [0, 1], minimax for the relative error of log(1 + x): 2^-27.4 and 2^-60.1. No
///           division: on AVX-512 the 11 and 23 terms are cheaper than one.
///   p       (2 atanh(s) / s - 2) / s^2 as a polynomial in s^2, |s| <= 3 - sqrt(8): 2^-30.2 and 2^-59.2.
///   lift    2^lift_bits makes every subnormal number normal.
/// Beyond exp_overflow and below expm1_floor the function is +inf and -1 to the last bit. e^exp_least is the smallest
/// normal number, rounded up. The polynomials come from Remez exchange in 60 digits; the errors hold for the
/// coefficients as printed.
template <class T>
struct constants;

template <>
struct constants<float> {
  static constexpr int mantissa_bits = 23, bias = 127, lift_bits = 24;
  static constexpr float anchor = 0x1.8p23f, log2e = 0x1.715476p0f, ln2_hi = 0x1.62e4p-1f, ln2_lo = 0x1.7f7d1cp-20f;
  static constexpr float exp_overflow = 89.0f, exp_least = -87.3365f, expm1_floor = -20.0f, lift = 0x1p24f;
  static constexpr std::array<float, 5> q{0.5f, 0x1.5554b6p-3f, 0x1.5555bap-5f, 0x1.1223a8p-7f, 0x1.6c5574p-10f};
  static constexpr std::array<float, 9> l{-0x1.ffffd2p-2f, 0x1.554ddp-2f,  -0x1.ff23e6p-3f,
                                          0x1.934b54p-3f,  -0x1.3a436p-3f, 0x1.b4ae2p-4f,
                                          -0x1.d6b0f4p-5f, 0x1.4918ap-6f,  -0x1.af4c72p-9f};
  static constexpr std::array<float, 3> p{0x1.55557ap-1f, 0x1.995eccp-2f, 0x1.31e132p-2f};
};

template <>
struct constants<double> {
  static constexpr int mantissa_bits = 52, bias = 1023, lift_bits = 54;
  static constexpr double anchor = 0x1.8p52, log2e = 0x1.71547652b82fep0, ln2_hi = 0x1.62e42fefap-1,
                          ln2_lo = 0x1.cf79abc9e3b3ap-40;
  static constexpr double exp_overflow = 710.0, exp_least = -708.3964, expm1_floor = -40.0, lift = 0x1p54;
  static constexpr std::array<double, 10> q{0.5,
                                            0x1.555555555553ep-3,
                                            0x1.5555555553afap-5,
                                            0x1.1111111118d6fp-7,
                                            0x1.6c16c17a0658cp-10,
                                            0x1.a01a017192104p-13,
                                            0x1.a019b3804ccb5p-16,
                                            0x1.71de97983c6cfp-19,
                                            0x1.289786998b6b7p-22,
                                            0x1.ae490275873bcp-26};
  static constexpr std::array<double, 22> l{
      -0x1.ffffffffffffdp-2,  0x1.55555555552bcp-2, -0x1.ffffffffe6b9ep-3, 0x1.99999995ab55ep-3,
      -0x1.555554f69888ap-3,  0x1.2492433319f10p-3, -0x1.ffff78ad71064p-4, 0x1.c717fdd1a5a35p-4,
      -0x1.997cf6f2e4611p-4,  0x1.73cd30de0b908p-4, -0x1.5315e7eecb725p-4, 0x1.33d204318c5f1p-4,
      -0x1.116db69b09ed2p-4,  0x1.ceb2d10a4becdp-5, -0x1.681eaae13b10ap-5, 0x1.efdd3cde317a2p-6,
      -0x1.21e2faf1cc016p-6,  0x1.138787184859fp-7, -0x1.946691122de1ap-9, 0x1.aab29b807768ap-11,
      -0x1.1e879bf783a12p-13, 0x1.6e8f215bb035bp-17};
  static constexpr std::array<double, 7> p{0x1.5555555555592p-1, 0x1.999999997feadp-2, 0x1.24924941e4524p-2,
                                           0x1.c71c52133419bp-3, 0x1.74663d0023b97p-3, 0x1.39a1e93d4b015p-3,
                                           0x1.2f03a8370fd2cp-3};
};

/// a * b + c, fused wherever the hardware can. xsimd 8.1 has no fused form for AVX-512: it multiplies, then adds, and
/// the compiler may fuse them (g++ does, clang 14 does not). This function uses the intrinsic instead.
template <class T, class Arch>
ATTUNE_INLINE xsimd::batch<T, Arch> multiply_add(xsimd::batch<T, Arch> const& a, xsimd::batch<T, Arch> const& b,
                                                 xsimd::batch<T, Arch> const& c) {
#if XSIMD_WITH_AVX512F
  if constexpr (std::is_base_of_v<xsimd::avx512f, Arch>) {
    if constexpr (std::is_same_v<T, float>)
      return _mm512_fmadd_ps(a, b, c);
    else
      return _mm512_fmadd_pd(a, b, c);
  } else
#endif
    return simd::fma(a, b, c);
}

/// Every coefficient times a number.
template <class T, std::size_t N>
constexpr std::array<T, N> times(T factor, std::array<T, N> c) {
  for (T& x : c) x *= factor;
  return c;
}

/// c[0] + c[1] x + c[2] x^2 + ...: Horner's rule. Long polynomials use Horner's rule in x^2 over pairs, which halves
/// the chain of dependent operations at the cost of one multiplication (22 terms: 4.3 ns instead of 5.2 ns per AVX-512
/// register). The pairs are neighbors; odd and even halves would cancel where the signs alternate. The first two
/// coefficients, whose rounding errors matter most, use plain Horner.
template <class T, class Arch, std::size_t N, std::size_t... K>
ATTUNE_INLINE xsimd::batch<T, Arch> polynomial(xsimd::batch<T, Arch> const& x, std::array<T, N> const& c,
                                               std::index_sequence<K...>) {
  using batch = xsimd::batch<T, Arch>;
  if constexpr (N < 16) {
    batch r(c[N - 1]);
    ((r = multiply_add(r, x, batch(c[N - 2 - K]))), ...);
    return r;
  } else {
    batch const y = x * x;
    batch r = multiply_add(batch(c[N - 1]), x, batch(c[N - 2]));
    ((r = multiply_add(r, y, multiply_add(batch(c[N - 3 - 2 * K]), x, batch(c[N - 4 - 2 * K])))), ...);
    return multiply_add(multiply_add(r, x, batch(c[1])), x, batch(c[0]));
  }
}
/// Overload that chooses the number of steps. N must be below 16 or even.
template <class T, class Arch, std::size_t N>
ATTUNE_INLINE xsimd::batch<T, Arch> polynomial(xsimd::batch<T, Arch> const& x, std::array<T, N> const& c) {
  static_assert(N < 16 || N % 2 == 0, "a long polynomial is evaluated in pairs of coefficients");
  constexpr std::size_t steps = N < 16 ? N - 1 : N / 2 - 2;
  return simd::polynomial(x, c, std::make_index_sequence<steps>{});
}

/// Functions on registers of doubles, and their use for floats: core/simd_in_double.hpp, included below.
template <class Arch>
struct wide_math;
template <class F, class Each, class T, class Arch, class... More>
xsimd::batch<T, Arch> computed_in_double(F const& f, Each const& each, xsimd::batch<T, Arch> const& x,
                                         More const&... more);
template <class Each, class T, class Arch, class... More>
xsimd::batch<T, Arch> lane_by_lane(Each const& each, xsimd::batch<T, Arch> const& x, More const&... more);

}  // namespace attune::simd

namespace attune {

/// Every function takes all lanes through one straight line of code. NaN input gives NaN output. Largest errors found,
/// in ulp: every number of the range in float, 2 * 10^7 random numbers in double. The errors of expm1 are given below
/// and above 0.34.
///                      exp_nonpositive   exp   expm1 below, above   log   log1p   log1p_unit
///   with FMA                0.92         0.93     1.46    1.62      0.84   0.85      1.40
///   multiply, then add      1.18         1.21     1.23    1.73      0.86   0.87      1.96
template <class T, class Arch>
struct scalar<xsimd::batch<T, Arch>> {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "attune computes on batches of float or double");

  using batch = xsimd::batch<T, Arch>;
  using mask = xsimd::batch_bool<T, Arch>;

  /// One instruction where that gives a if b is NaN; the instruction of ARM propagates NaN.
  ATTUNE_INLINE static batch larger(batch const& a, batch const& b) {
    if constexpr (x86_)
      return simd::larger_on_x86(a, b);
    else
      return simd::select(a < b, b, a);
  }
  ATTUNE_INLINE static batch smaller(batch const& a, batch const& b) {
    if constexpr (x86_)
      return simd::smaller_on_x86(a, b);
    else
      return simd::select(b < a, b, a);
  }
  ATTUNE_INLINE static batch select(mask const& c, batch const& a, batch const& b) { return simd::select(c, a, b); }
  ATTUNE_INLINE static batch infinity() { return batch(scalar<T>::infinity()); }
  ATTUNE_INLINE static batch epsilon() { return batch(std::numeric_limits<T>::epsilon()); }
  ATTUNE_INLINE static batch least() { return batch((std::numeric_limits<T>::min)()); }
  ATTUNE_INLINE static batch binade(batch const& x) { return from_bits(to_bits(x) & to_bits(infinity())); }
  ATTUNE_INLINE static bool any(xsimd::batch_bool<T, Arch> const& c) { return simd::any(c); }
  ATTUNE_INLINE static mask vanishes(batch const& x) { return x == batch(T(0)); }
  /// factor * tangent, 0 where either is 0 (`chained` of core/dual.hpp). AVX-512 compares under a mask and multiplies
  /// under a mask: three instructions instead of five.
  ATTUNE_INLINE static batch chained(batch const& factor, batch const& tangent) {
#if XSIMD_WITH_AVX512F
    if constexpr (std::is_base_of_v<xsimd::avx512f, Arch>) {
      if constexpr (std::is_same_v<T, float>) {
        __m512 const zero = _mm512_setzero_ps();
        __mmask16 const moves = _mm512_cmp_ps_mask(factor, zero, _CMP_NEQ_UQ);
        return _mm512_maskz_mul_ps(_mm512_mask_cmp_ps_mask(moves, tangent, zero, _CMP_NEQ_UQ), factor, tangent);
      } else {
        __m512d const zero = _mm512_setzero_pd();
        __mmask8 const moves = _mm512_cmp_pd_mask(factor, zero, _CMP_NEQ_UQ);
        return _mm512_maskz_mul_pd(_mm512_mask_cmp_pd_mask(moves, tangent, zero, _CMP_NEQ_UQ), factor, tangent);
      }
    } else
#endif
      return select(vanishes(factor) || vanishes(tangent), batch(T(0)), batch(factor * tangent));
  }
  ATTUNE_INLINE static batch zero_if_finite(batch const& x) {
#if ATTUNE_FINITE_MATH_
    // For bits from infinity on, adding (top - infinity) sets the highest bit. Shifted one place down, that bit is the
    // number 2.
    constexpr typename bits::value_type infinity =
        std::bit_cast<typename bits::value_type>(std::numeric_limits<T>::infinity());
    constexpr typename bits::value_type top = ~(~typename bits::value_type(0) >> 1);
    return from_bits(simd::shifted_down(bits(((to_bits(x) & bits(~top)) + bits(top - infinity)) & bits(top)), 1));
#else
    return x - as_computed(x);
#endif
  }
  ATTUNE_INLINE static batch as_computed(batch const& x) { return simd::as_computed(x); }
  ATTUNE_INLINE static batch quotient(batch const& a, batch const& b) { return simd::quotient(a, b); }
  static constexpr int order = 0;
  ATTUNE_INLINE static batch lowest() { return batch(std::numeric_limits<T>::lowest()); }
  ATTUNE_INLINE static batch softplus(batch const& x) { return attune::detail::softplus(x); }
  ATTUNE_INLINE static batch sigmoid(batch const& x) { return attune::detail::sigmoid(x); }
  ATTUNE_INLINE static batch tanh(batch const& x) { return attune::detail::tanh(x); }
  ATTUNE_INLINE static batch log1p_rate(batch const& k, batch const& x) { return attune::detail::log1p_rate(k, x); }
  ATTUNE_INLINE static batch abs(batch const& x) { return simd::abs(x); }
  ATTUNE_INLINE static batch sqrt(batch const& x) { return simd::square_root(x); }
  ATTUNE_INLINE static batch floor(batch const& x) {
    if constexpr (simd::has_floor<Arch>) {
      return simd::floor(x);
    } else {  // rounds to the nearest integer by adding 2^mantissa_bits; larger numbers are integers
      batch const size = abs(x), unit(T(std::uint64_t(1) << k_::mantissa_bits));
      batch const nearest = as_computed(as_computed(size + unit) - unit);
      batch const r = simd::select(x < batch(T(0)), -nearest, nearest);
      return simd::select(size < unit, simd::select(r > x, r - batch(T(1)), r), x);
    }
  }
  // Computed in double for either format (core/simd_in_double.hpp).
  static batch sin(batch const& x) {
    return simd::computed_in_double(simd::wide_math<Arch>::sin, [](T a) { return std::sin(a); }, x);
  }
  static batch cos(batch const& x) {
    return simd::computed_in_double(simd::wide_math<Arch>::cos, [](T a) { return std::cos(a); }, x);
  }
  static batch acos(batch const& x) {
    return simd::computed_in_double(simd::wide_math<Arch>::acos, [](T a) { return std::acos(a); }, x);
  }
  static batch erf(batch const& x) {
    return simd::computed_in_double(simd::wide_math<Arch>::erf, [](T a) { return std::erf(a); }, x);
  }
  static batch pow(batch const& x, batch const& y) {
    auto const each = [](T a, T b) { return std::pow(a, b); };
    if constexpr (std::is_same_v<T, double>)
      return simd::lane_by_lane(each, x, y);
    else
      return simd::computed_in_double(simd::wide_math<Arch>::pow, each, x, y);
  }
  ATTUNE_INLINE static batch two_over_sqrt_pi() { return batch(scalar<T>::two_over_sqrt_pi()); }

  /// 13 operations in float, 18 in double. Throughput is the limit, so Horner's rule is faster than Estrin's. With
  /// least_weight = 2^-m, the result is 0 below 2^(-m-1/2): e^f 2^(bias-m-1) is multiplied by 2^(n+m+1-bias), whose
  /// exponent field is 0 there. The clamp keeps NaN and turns -inf into such a number.
  ATTUNE_INLINE static batch exp_nonpositive(batch const& x0) {
    return exp_from<1 - attune::detail::least_weight_exponent<T>>(x0);
  }
  /// The same with the least normal number instead of the least weight: 0 below log(2^-125.5) = -86.99 (float),
  /// log(2^-1021.5) = -708.05 (double).
  ATTUNE_INLINE static batch exp_of_negative(batch const& x0) { return exp_from<k_::bias - 1>(x0); }
  /// The exponent field of a result of 1 is `Field`; the result is 0 where it would be 0 or less.
  template <int Field>
  ATTUNE_INLINE static batch exp_from(batch const& x0) {
    constexpr T offset = k_::anchor + T(Field);
    batch const x = larger(x0, batch(T(-Field) * k_::ln2_hi));
    batch const r = as_computed(simd::multiply_add(x, batch(k_::log2e), batch(offset)));
    return exp_times<k_::bias - Field>(remainder(x, r - batch(offset))) * power_of_two(to_bits(r));
  }

  /// 2^(n-1) is applied in two factors, because neither end of the range fits in one. Finite up to the largest number
  /// (in float, xsimd::exp overflows at 88.38 instead of 88.72). 0 instead of a subnormal number.
  ATTUNE_INLINE static batch exp(batch const& x0) {
    constexpr T offset = k_::anchor + T(2 * k_::bias - 1);
    batch const x = smaller(larger(x0, batch(k_::exp_least)), batch(k_::exp_overflow));
    batch const r = as_computed(simd::multiply_add(x, batch(k_::log2e), batch(offset)));
    bits const k = to_bits(r) - to_bits(batch(k_::anchor));  // n - 1 + 2 bias: both halves are valid exponents
    bits const half = simd::shifted_down(k, 1);
    batch const part = as_computed(exp_times<1>(remainder(x, r - batch(offset))) * power_of_two(half));
    return simd::select(x0 < batch(k_::exp_least), batch(T(0)), batch(part * power_of_two(k - half)));
  }
  ATTUNE_INLINE static batch zero_if_tiny(batch const& x) {
    return simd::select(simd::abs(x) < batch(attune::detail::least_weight<T>), batch(T(0)), x);
  }
  /// Where a product is so small that a weight counts as 0, its first factor becomes 0. Makes no subnormal number on
  /// the way: a factor that is no tiny one, times 1 / least_weight, is at least 1.
  ATTUNE_INLINE static batch zero_if_tiny(batch const& x, batch const& times) {
    batch const in_units = as_computed(x * batch(T(1) / attune::detail::least_weight<T>)) * times;
    return simd::select(simd::abs(in_units) < batch(T(1)), batch(T(0)), x);
  }

  /// 2^n (f + f^2 Q) + (2^n - 1), halved until the last step because 2^n overflows before e^x does. f^2 Q is added
  /// last: rounding f + f^2 Q first would cost 0.4 ulp more between 0.35 and 1.04. Subnormal x may lose their last bit.
  ATTUNE_INLINE static batch expm1(batch const& x0) {
    constexpr T offset = k_::anchor + T(k_::bias - 1);
    batch const x = smaller(larger(x0, batch(k_::expm1_floor)), batch(k_::exp_overflow));
    batch const r = as_computed(simd::multiply_add(x, batch(k_::log2e), batch(offset)));
    batch const f = remainder(x, r - batch(offset));
    batch const s = power_of_two(to_bits(r)), sf = s * f;
    batch const h = simd::multiply_add(sf, f * simd::polynomial(f, k_::q), sf + as_computed(s - batch(T(0.5))));
    return h + h;
  }

  /// Correct for subnormal numbers too.
  ATTUNE_INLINE static batch log(batch const& x) { return log_corrected(x, batch(T(0))); }

  /// log(u) + (1 + x - u) / u with u = 1 + x rounded: a first-order correction of the rounding error of u.
  ATTUNE_INLINE static batch log1p(batch const& x) {
    batch const one(T(1));
    batch const u = as_computed(one + x);
    batch const lost = simd::select(x < one, x - as_computed(u - one), one - as_computed(u - x));
    return log_corrected(u, quotient(lost, u));
  }

  /// x + (x L) x rather than x + x^2 L: x^2 could be subnormal, which is slow.
  ATTUNE_INLINE static batch log1p_unit(batch const& x) {
    return simd::multiply_add(x * simd::polynomial(x, k_::l), x, x);
  }

 private:
  using k_ = simd::constants<T>;
  using bits = xsimd::batch<std::conditional_t<std::is_same_v<T, float>, std::uint32_t, std::uint64_t>, Arch>;
  static constexpr bool x86_ = std::is_base_of_v<xsimd::sse2, Arch> || std::is_base_of_v<xsimd::avx, Arch> ||
                               std::is_base_of_v<xsimd::avx512f, Arch>;

  ATTUNE_INLINE static bits to_bits(batch const& x) { return simd::bits_as<typename bits::value_type>(x); }
  ATTUNE_INLINE static batch from_bits(bits const& x) { return simd::bits_as<T>(x); }
  /// From a biased exponent in the lowest bits; higher bits are shifted out.
  ATTUNE_INLINE static batch power_of_two(bits const& exponent) {
    return from_bits(simd::shifted_up(exponent, k_::mantissa_bits));
  }
  /// f = x - n ln 2
  ATTUNE_INLINE static batch remainder(batch const& x, batch const& n) {
    return simd::multiply_add(n, batch(-k_::ln2_lo), as_computed(simd::multiply_add(n, batch(-k_::ln2_hi), x)));
  }
  /// 2^Power e^f. With a factor 2^(n-Power), an exponent field of 0 means 0 and never a subnormal product.
  template <int Power>
  ATTUNE_INLINE static batch exp_times(batch const& f) {
    constexpr T power = T(std::uint64_t(1) << Power);
    constexpr auto q = simd::times(power, k_::q);
    batch const one(power);
    return simd::multiply_add(simd::multiply_add(simd::polynomial(f, q), f, one), f, one);
  }

  /// log(x) + c for a correction c far smaller than log(x), or for x = 1. With x = 2^e (1 + f), 1 + f in [sqrt(1/2),
  /// sqrt(2)), s = f / (2 + f): log(1 + f) = 2 atanh(s) = f - (f^2/2 - s (f^2/2 + s^2 P(s^2))). Subtracting the bits of
  /// sqrt(1/2) makes the exponent field change at that value. The anchor then turns the field into a number, because
  /// conversions from 64-bit integers are slow before AVX-512.
  ATTUNE_INLINE static batch log_corrected(batch const& x0, batch const& c) {
    batch const zero(T(0)), one(T(1)), root_half(T(0.70710678118654752440));
    mask const subnormal = x0 < batch((std::numeric_limits<T>::min)());
    batch const x = simd::select(subnormal, x0 * batch(k_::lift), x0);
    bits const u = to_bits(x) - to_bits(root_half) + to_bits(one);
    batch const biased = from_bits(simd::shifted_down(u, k_::mantissa_bits) | to_bits(batch(k_::anchor)));
    batch const e = as_computed(biased - simd::select(subnormal, batch(k_::anchor + T(k_::bias + k_::lift_bits)),
                                                      batch(k_::anchor + T(k_::bias))));
    bits const mantissa((typename bits::value_type(1) << k_::mantissa_bits) - 1);
    batch const f = from_bits((u & mantissa) + to_bits(root_half)) - one;
    batch const s = quotient(f, f + batch(T(2))), z = s * s, half_square = f * f * batch(T(0.5));
    batch const low = simd::multiply_add(e, batch(k_::ln2_lo), c);
    batch const t = simd::multiply_add(s, simd::multiply_add(simd::polynomial(z, k_::p), z, half_square), low);
    batch const r = simd::multiply_add(e, batch(k_::ln2_hi), as_computed(f - as_computed(half_square - t)));
    batch const outside = simd::select(x0 == zero, -infinity(), batch(std::numeric_limits<T>::quiet_NaN()));
    return simd::select(x0 < infinity(), simd::select(x0 > zero, r, outside), x0);
  }
};

}  // namespace attune

#include <attune/core/simd_in_double.hpp>
