// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   sin, cos, acos, erf, pow on a SIMD register
//
// These functions are computed in double, for floats too: two registers of doubles for one of floats, rounded once at
// the end. A float result is then practically correctly rounded, and each function has one set of coefficients.
//   sin, cos  x = n pi/2 + f, |f| <= pi/4: pi/2 in three parts; n times the first two is exact for |x| < 2^20. The C
//             library computes lanes beyond that, and lanes next to a multiple of pi/2, one by one.
//   acos      by the arc sine of x, or, beyond 1/2, of sqrt((1 - |x|) / 2).
//   erf       x + x E(x^2) up to 1; 1 - exp(-x^2) G(t), t = (x - 2) / (x + 2), up to 6, where it is 1 to the last bit.
//   pow       floats: exp(y log |x|) and the sign; doubles: one by one by the C library.
// Where the target has no registers of doubles (32-bit ARM), the C library computes every lane.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <attune/config.hpp>
#include <attune/core/simd_math.hpp>
#include <attune/core/xsimd.hpp>

namespace attune::simd {

/// Minimax polynomials, low order first, by Remez exchange in 60 digits. The errors are relative to the function, for
/// the coefficients as printed: sine 2^-57, cosine 2^-59, arc sine 2^-58, erf 2^-56 on both pieces.
namespace in_double {
constexpr double anchor = 0x1.8p52,               ///< adding it to a number rounds that number to an integer
    two_over_pi = 0x1.45f306dc9c883p-1;           ///< 2 / pi
constexpr double half_pi_1 = 0x1.921fb544p+0,     ///< pi / 2 in three parts: the first
    half_pi_2 = 0x1.0b4611a6p-34,                 ///< the second part
    half_pi_3 = 0x1.3198a2e037073p-69;            ///< the third part
constexpr double half_pi = 0x1.921fb54442d18p+0,  ///< pi / 2 as a double
    half_pi_rest = 0x1.1a62633145c07p-54;         ///< pi / 2 - half_pi
/// (sin f - f) / f^3
constexpr std::array<double, 6> sine{-0x1.5555555555549p-3, 0x1.111111110f87bp-7,   -0x1.a01a019c119d2p-13,
                                     0x1.71de3577b7999p-19, -0x1.ae5e663a7de6bp-26, 0x1.5d9300d9b819dp-33};
/// (cos f - 1 + f^2 / 2) / f^4
constexpr std::array<double, 6> cosine{0x1.555555555554bp-5,   -0x1.6c16c16c14f8bp-10, 0x1.a01a019c83a2ep-16,
                                       -0x1.27e4f7ea42d83p-22, 0x1.1ee9d75943849p-29,  -0x1.8fa468f6786dbp-37};
/// (asin s - s) / s^3, s^2 <= 1/4
constexpr std::array<double, 13> arc_sine{
    0x1.5555555555578p-3, 0x1.333333332de89p-4,  0x1.6db6db723210ep-5, 0x1.f1c71a890cc58p-6, 0x1.6e8be030b4712p-6,
    0x1.1c49d8aab1802p-6, 0x1.ca21c7a3bdeefp-7,  0x1.75733f7a71e9cp-7, 0x1.61a36ea0d7e53p-7, 0x1.dfdd4fd12b213p-9,
    0x1.6578c9b158066p-6, -0x1.5aa247065ed0ep-6, 0x1.0c1b3e60fb6b3p-5};
/// erf(x) / x - 1 as a polynomial in x^2 <= 1
constexpr std::array<double, 13> erf_near{0x1.06eba8214db69p-3,   -0x1.812746b0379e6p-2,  0x1.ce2f21a042b20p-4,
                                          -0x1.b82ce3128499dp-6,  0x1.565bcd0db02f4p-8,   -0x1.c02db3d8ed4cap-11,
                                          0x1.f9a321a121b27p-14,  -0x1.f4d1df39875b2p-17, 0x1.b9def1a040879p-20,
                                          -0x1.5f1d36d04d768p-23, 0x1.f7a41290e73afp-27,  -0x1.386ac16929d4ep-30,
                                          0x1.0579ab2caaf4cp-34};
/// exp(x^2) (1 - erf(x)) as a polynomial in t, 1 <= x <= 6
constexpr std::array<double, 13> erf_far{
    0x1.058671b52c776p-2,  -0x1.b57034efd3f55p-2,  0x1.eeea7dc8a78c9p-3,   -0x1.437f0b68cd79cp-4, 0x1.e947158af72d5p-9,
    0x1.ca95ed8b1c8eep-8,  -0x1.bc258d2576a98p-11, -0x1.016b553e1457bp-10, 0x1.6d335f83ad67bp-15, 0x1.6d81fda149408p-13,
    0x1.cf919a9beb5ddp-16, -0x1.be0e87f0df7d7p-16, -0x1.a786f90220bfbp-17};
}  // namespace in_double

/// each(x[i], more[i]...) for every lane.
template <class Each, class T, class Arch, class... More>
ATTUNE_NOINLINE xsimd::batch<T, Arch> lane_by_lane(Each const& each, xsimd::batch<T, Arch> const& x,
                                                   More const&... more) {
  constexpr std::size_t lanes = xsimd::batch<T, Arch>::size, arguments = 1 + sizeof...(More);
  alignas(64) T numbers[arguments][lanes];
  std::size_t n = 0;
  x.store_aligned(numbers[n]);
  (more.store_aligned(numbers[++n]), ...);
  for (std::size_t l = 0; l < lanes; ++l)
    if constexpr (arguments == 1)
      numbers[0][l] = each(numbers[0][l]);
    else
      numbers[0][l] = each(numbers[0][l], numbers[1][l]);
  return xsimd::batch<T, Arch>::load_aligned(numbers[0]);
}

/// f(x, more...) for either format, where f works on registers of doubles; `each` lane by lane where the target has no
/// such registers.
template <class F, class Each, class T, class Arch, class... More>
xsimd::batch<T, Arch> computed_in_double(F const& f, Each const& each, xsimd::batch<T, Arch> const& x,
                                         More const&... more) {
  if constexpr (std::is_same_v<T, double>) {
    return f(x, more...);
  } else if constexpr (!has_doubles<Arch>) {
    return simd::lane_by_lane(each, x, more...);
  } else {
    using wide = xsimd::batch<double, Arch>;
    constexpr std::size_t lanes = xsimd::batch<T, Arch>::size, half = wide::size;
    static_assert(lanes == 2 * half);
    auto const part = [](xsimd::batch<T, Arch> const& from, std::size_t first) {
      alignas(64) T narrow[lanes];
      alignas(64) double to[half];
      from.store_aligned(narrow);
      for (std::size_t l = 0; l < half; ++l) to[l] = double(narrow[first + l]);
      return wide::load_aligned(to);
    };
    alignas(64) double parts[lanes];
    alignas(64) T rounded[lanes];
    f(part(x, 0), part(more, 0)...).store_aligned(parts);
    f(part(x, half), part(more, half)...).store_aligned(parts + half);
    for (std::size_t l = 0; l < lanes; ++l) rounded[l] = T(parts[l]);
    return xsimd::batch<T, Arch>::load_aligned(rounded);
  }
}

template <class Arch>
struct wide_math {
  using batch = xsimd::batch<double, Arch>;        ///< a register of doubles
  using mask = xsimd::batch_bool<double, Arch>;    ///< the result of comparing two batches
  using bits = xsimd::batch<std::uint64_t, Arch>;  ///< the bits of a batch
  using of = scalar<batch>;                        ///< the elementary functions of a batch

  /// The sine of an angle in radians, of any size.
  static batch sin(batch const& x) {
    return turned(x, 0, [](double angle) { return std::sin(angle); });
  }
  /// The cosine of an angle in radians, of any size.
  static batch cos(batch const& x) {
    return turned(x, 1, [](double angle) { return std::cos(angle); });
  }

  /// The angle in [0, pi] whose cosine is x; NaN outside [-1, 1].
  static batch acos(batch const& x) {
    batch const a = of::abs(x), half(0.5), zero(0.0);
    mask const beyond = a > half;
    batch const z = simd::select(beyond, (batch(1.0) - a) * half, x * x);
    batch const s = simd::select(beyond, square_root(z), x);
    batch const rest = s * z * simd::polynomial(z, in_double::arc_sine);  // asin(s) = s + rest
    batch const hi(in_double::half_pi), lo(in_double::half_pi_rest);
    batch const turned = hi - as_computed(s - as_computed(lo - rest));  // pi / 2 - asin(s)
    return simd::select(beyond, simd::select(x < zero, turned, s + rest) * batch(2.0), turned);
  }

  /// The error function.
  static batch erf(batch const& x) {
    batch const one(1.0), two(2.0), a = of::smaller(of::abs(x), batch(6.0));
    batch const z = a * a, inner = simd::multiply_add(a, simd::polynomial(z, in_double::erf_near), a);
    batch const t = (a - two) / (a + two);
    batch const outer = one - of::exp_nonpositive(-z) * simd::polynomial(t, in_double::erf_far);
    return with_sign(simd::select(a < one, inner, outer), sign(x));
  }

  /// exp(y log |x|). Its error grows with the exponent but does not reach the 24 bits of a float.
  static batch pow(batch const& x, batch const& y) {
    batch const zero(0.0), one(1.0), a = of::abs(x), half = y * batch(0.5);
    mask const whole = of::floor(y) == y, odd = whole && unequal(of::floor(half), half);
    mask const is_one = y == zero || x == one || (a == one && whole);
    batch const size = simd::select(is_one, one, of::exp(y * of::log(a)));
    batch const value = with_sign(size, simd::select(odd, sign(x), zero));
    mask const undefined = x < zero && a < of::infinity() && !whole;
    return simd::select(undefined, batch(std::numeric_limits<double>::quiet_NaN()), value);
  }

 private:
  /// sin(x + quarters pi / 2). The lowest bits of n + anchor equal the lowest bits of n.
  template <class Each>
  static batch turned(batch const& x, std::uint64_t quarters, Each const& each) {
    batch const r = as_computed(simd::multiply_add(x, batch(in_double::two_over_pi), batch(in_double::anchor)));
    batch const n = as_computed(r - batch(in_double::anchor));
    bits const quarter = bits_as<std::uint64_t>(r) + bits(quarters);

    // f = x - n pi / 2: the first difference is exact; `lost` is the rounding error of the second one.
    batch const a = as_computed(simd::multiply_add(n, batch(-in_double::half_pi_1), x));
    batch const w = as_computed(n * batch(in_double::half_pi_2));
    batch const b = as_computed(a - w), t = as_computed(b - a);
    batch const lost = as_computed(a - as_computed(b - t)) - as_computed(w + t);
    batch const f = b + as_computed(lost - n * batch(in_double::half_pi_3));

    batch const z = f * f, one(1.0), half_square = z * batch(0.5), top = as_computed(one - half_square);
    batch const sine = simd::multiply_add(f * z, simd::polynomial(z, in_double::sine), f);
    batch const below = as_computed(as_computed(one - top) - half_square);
    batch const cosine = top + simd::multiply_add(z * z, simd::polynomial(z, in_double::cosine), below);
    mask const swapped = bits_as<double>(shifted_up(bits(quarter & bits(1)), 62)) > batch(0.0);
    batch const value = simd::select(swapped, cosine, sine);
    batch const result = bits_as<double>(bits_as<std::uint64_t>(value) ^ shifted_up(shifted_down(quarter, 1), 63));

    mask const within = of::abs(x) < batch(0x1p20);
    mask const hard = !within || (of::abs(f) < batch(0x1p-16) && unequal(n, batch(0.0)));
    if (!simd::any(hard)) return result;
    return simd::select(hard, simd::lane_by_lane(each, x), result);
  }

  static bits highest() { return bits(std::uint64_t(1) << 63); }
  static batch sign(batch const& x) { return bits_as<double>(bits_as<std::uint64_t>(x) & highest()); }
  static batch with_sign(batch const& size, batch const& sign) {
    return bits_as<double>(bits_as<std::uint64_t>(size) | bits_as<std::uint64_t>(sign));
  }
};

}  // namespace attune::simd
