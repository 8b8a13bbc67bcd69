// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The only header that includes xsimd, and the only one that knows the differences between its versions. attune works
// with 8.1 to 14. Other headers call xsimd through the functions below, and use these operators alone:
//
//   batches of floats and doubles    + - * /  < <= > >= ==    (-0 by a sign may be 0 for AVX-512)
//   batches of integers              + -  & | ~ ^
//   masks of floats and doubles      && || !
//
// The others are not the same everywhere. `^` of two masks is `|` for AVX-512 in xsimd 8.1. `!=` of masks compares
// numbers on SSE2. `!=` of floating-point batches is false for NaN on AVX. Masks of integers do not compile for
// AVX-512. The test meta.simd refuses them.
//
//   what                        8.1 to 10           11, 12              13                  14
//   cast of bits                to a batch type     to a number type    to a number type    to a number type
//   "does this machine have"    best, version()     best, version()     has()               has()
//   batches without vectors     none                none                emulated<N>         emulated<N>
//   max(x, y) on x86            x > y ? x : y       x > y ? x : y       x > y ? x : y       y > x ? y : x
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <attune/config.hpp>

#if !__has_include(<xsimd/config/xsimd_config.hpp>)
#error \
    "attune: xsimd not found. Install it (Debian, Ubuntu: libxsimd-dev; Fedora: xsimd-devel; Arch, conda-forge, Homebrew, vcpkg, Conan: xsimd), or clone github.com/xtensor-stack/xsimd and add its folder include with -isystem."
#endif
#include <xsimd/config/xsimd_config.hpp>  // the version of xsimd and the features of the target; no code

#if XSIMD_VERSION_MAJOR < 8 || (XSIMD_VERSION_MAJOR == 8 && XSIMD_VERSION_MINOR < 1)
#error \
    "attune: this xsimd is too old: 8.1 or newer is needed. Ubuntu 22.04 has 7.6; take a newer one from github.com/xtensor-stack/xsimd."
#endif

#if defined(XSIMD_NO_SUPPORTED_ARCHITECTURE)
#if __has_include(<xsimd/arch/xsimd_emulated.hpp>)
// xsimd >= 13: its emulated batches, slow but correct. A macro defined before xsimd's other headers enables them.
#define XSIMD_WITH_EMULATED 1
#undef XSIMD_NO_SUPPORTED_ARCHITECTURE
#if !defined(XSIMD_DEFAULT_ARCH)
#define XSIMD_DEFAULT_ARCH ::xsimd::emulated<128>
#endif
#else
#error \
    "attune: the target has no vector instructions that this xsimd knows. Compile for one that has (x86: -msse2; ARM: -mfpu=neon; SVE: -msve-vector-bits=256), or take xsimd 13 or newer, which emulates them."
#endif
#endif

#include <xsimd/xsimd.hpp>

#if !defined(XSIMD_WITH_EMULATED)
/// An xsimd that does not know emulated vectors has none.
#define XSIMD_WITH_EMULATED 0
#endif
#if !defined(XSIMD_WITH_SVE)
/// The same for SVE.
#define XSIMD_WITH_SVE 0
#endif

ATTUNE_INTRINSICS_BEGIN

namespace attune::simd {

/// c ? a : b in each lane.
template <class T, class Arch>
ATTUNE_INLINE xsimd::batch<T, Arch> select(xsimd::batch_bool<T, Arch> const& c, xsimd::batch<T, Arch> const& a,
                                           xsimd::batch<T, Arch> const& b) {
  return xsimd::select(c, a, b);
}
/// Whether a mask has a lane that is set.
template <class T, class Arch>
ATTUNE_INLINE bool any(xsimd::batch_bool<T, Arch> const& c) {
  return xsimd::any(c);
}
/// Whether all lanes of a mask are set.
template <class T, class Arch>
ATTUNE_INLINE bool all(xsimd::batch_bool<T, Arch> const& c) {
  return xsimd::all(c);
}
/// The lanes where two masks differ.
template <class T, class Arch>
ATTUNE_INLINE xsimd::batch_bool<T, Arch> exclusive_or(xsimd::batch_bool<T, Arch> const& a,
                                                      xsimd::batch_bool<T, Arch> const& b) {
  return (a && !b) || (b && !a);
}
/// The lanes that are not equal: those with NaN too.
template <class T, class Arch>
ATTUNE_INLINE xsimd::batch_bool<T, Arch> unequal(xsimd::batch<T, Arch> const& a, xsimd::batch<T, Arch> const& b) {
  return !(a == b);
}
/// |x|.
template <class T, class Arch>
ATTUNE_INLINE xsimd::batch<T, Arch> abs(xsimd::batch<T, Arch> const& x) {
  return xsimd::abs(x);
}
/// 0 with the sign of x.
template <class T, class Arch>
ATTUNE_INLINE xsimd::batch<T, Arch> sign_of(xsimd::batch<T, Arch> const& x) {
  return xsimd::bitofsign(x);
}
/// x << by, for unsigned integers: a function, so that g++ 12 warns of no intrinsic.
template <class T, class Arch>
ATTUNE_INLINE xsimd::batch<T, Arch> shifted_up(xsimd::batch<T, Arch> const& x, int by) {
  return x << by;
}
/// x >> by, for unsigned integers.
template <class T, class Arch>
ATTUNE_INLINE xsimd::batch<T, Arch> shifted_down(xsimd::batch<T, Arch> const& x, int by) {
  return x >> by;
}
/// Signed integers of 32 bits as floats, of 64 bits as doubles.
template <class T, class Arch>
ATTUNE_INLINE auto to_numbers(xsimd::batch<T, Arch> const& x) {
  return xsimd::to_float(x);
}
/// a * b + c, by an instruction that fuses them where xsimd has one.
template <class T, class Arch>
ATTUNE_INLINE xsimd::batch<T, Arch> fma(xsimd::batch<T, Arch> const& a, xsimd::batch<T, Arch> const& b,
                                        xsimd::batch<T, Arch> const& c) {
  return xsimd::fma(a, b, c);
}
/// The largest integer not above x. See has_floor.
template <class T, class Arch>
ATTUNE_INLINE xsimd::batch<T, Arch> floor(xsimd::batch<T, Arch> const& x) {
  return xsimd::floor(x);
}

/// The bits of x as numbers of another type of the same size.
template <class To, class From, class Arch>
ATTUNE_INLINE xsimd::batch<To, Arch> bits_as(xsimd::batch<From, Arch> const& x) {
#if XSIMD_VERSION_MAJOR >= 11
  return xsimd::bitwise_cast<To>(x);
#else
  return xsimd::bitwise_cast<xsimd::batch<To, Arch>>(x);
#endif
}

/// The products of the lower halves of the lanes, 64 bits each. The upper halves of the factors may hold anything.
template <class Arch>
ATTUNE_INLINE xsimd::batch<std::uint64_t, Arch> product_of_low_halves(xsimd::batch<std::uint64_t, Arch> const& a,
                                                                      xsimd::batch<std::uint64_t, Arch> const& b) {
#if XSIMD_WITH_NEON64 && !XSIMD_WITH_EMULATED
  if constexpr (std::is_base_of_v<xsimd::neon64, Arch>) return vmull_u32(vmovn_u64(a.data), vmovn_u64(b.data));
#elif XSIMD_WITH_SSE2 && !XSIMD_WITH_EMULATED
#if XSIMD_WITH_AVX512F
  if constexpr (std::is_base_of_v<xsimd::avx512f, Arch>) return _mm512_mul_epu32(a.data, b.data);
#endif
#if XSIMD_WITH_AVX2
  if constexpr (std::is_base_of_v<xsimd::avx2, Arch>) return _mm256_mul_epu32(a.data, b.data);
#endif
  if constexpr (std::is_base_of_v<xsimd::sse2, Arch>) return _mm_mul_epu32(a.data, b.data);
#if XSIMD_WITH_AVX
  if constexpr (std::is_same_v<xsimd::avx, Arch>)
    return _mm256_insertf128_si256(
        _mm256_castsi128_si256(_mm_mul_epu32(_mm256_castsi256_si128(a.data), _mm256_castsi256_si128(b.data))),
        _mm_mul_epu32(_mm256_extractf128_si256(a.data, 1), _mm256_extractf128_si256(b.data, 1)), 1);
#endif
#endif
  constexpr std::size_t lanes = xsimd::batch<std::uint64_t, Arch>::size;
  alignas(64) std::uint64_t x[lanes], y[lanes];
  a.store_aligned(x);
  b.store_aligned(y);
  for (std::size_t l = 0; l < lanes; ++l) x[l] = std::uint64_t(std::uint32_t(x[l])) * std::uint32_t(y[l]);
  return xsimd::batch<std::uint64_t, Arch>::load_aligned(x);
}

/// On x86 b > a ? b : a, in one instruction, NaN and signed zeros included.
template <class T, class Arch>
ATTUNE_INLINE xsimd::batch<T, Arch> larger_on_x86(xsimd::batch<T, Arch> const& a, xsimd::batch<T, Arch> const& b) {
#if XSIMD_VERSION_MAJOR >= 14
  return (xsimd::max)(a, b);
#else
  return (xsimd::max)(b, a);
#endif
}
/// On x86 b < a ? b : a.
template <class T, class Arch>
ATTUNE_INLINE xsimd::batch<T, Arch> smaller_on_x86(xsimd::batch<T, Arch> const& a, xsimd::batch<T, Arch> const& b) {
#if XSIMD_VERSION_MAJOR >= 14
  return (xsimd::min)(a, b);
#else
  return (xsimd::min)(b, a);
#endif
}

/// Whether the machine that this runs on has the instructions of Arch.
template <class Arch>
bool machine_has() {
#if XSIMD_VERSION_MAJOR >= 13
  return xsimd::available_architectures().has(Arch{});
#else
  return xsimd::available_architectures().best >= Arch::version();
#endif
}

/// A comparison gives a mask register with one bit per lane (AVX-512), not a vector. Detected by a conversion: a
/// register type as a template argument would warn.
template <class T, class Arch>
inline constexpr bool compares_into_bits =
    requires(xsimd::batch_bool<T, Arch> const& c) { static_cast<unsigned short>(c.data); };

/// x as computed: opaque to the compiler, which rearranges nothing across it. For arithmetic that relies on rounding;
/// -fassociative-math would simplify it away.
template <class T, class Arch>
ATTUNE_INLINE xsimd::batch<T, Arch> as_computed(xsimd::batch<T, Arch> x) {
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__)) && !XSIMD_WITH_EMULATED
  asm("" : "+v"(x.data));
#elif defined(__GNUC__) && defined(__aarch64__) && !XSIMD_WITH_SVE
  asm("" : "+w"(x.data));
#elif defined(__GNUC__)
  asm("" : "+m"(x));
#endif
  return x;
}

/// Lane i of the result is lane Lanes[i] of the concatenation (a, b).
template <std::size_t... Lanes, class B>
ATTUNE_INLINE B shuffled(B const& a, B const& b) {
  static_assert(sizeof...(Lanes) == B::size);
#if XSIMD_WITH_EMULATED || XSIMD_WITH_SVE  // their registers are not compiler vectors
  alignas(64) typename B::value_type from[2 * B::size], to[B::size];
  a.store_aligned(from);
  b.store_unaligned(from + B::size);
  std::size_t n = 0;
  ((to[n++] = from[Lanes]), ...);
  return B::load_aligned(to);
#else
  return B(
      __builtin_shufflevector(a.data, b.data,
                              Lanes...));  // the compiler builtin: vector libraries differ in what their shuffles take
#endif
}

/// Whether the target has registers of doubles; 32-bit ARM does not.
template <class Arch>
inline constexpr bool has_doubles =
#if XSIMD_WITH_NEON && !XSIMD_WITH_NEON64
    !std::is_base_of_v<xsimd::neon, Arch>;
#else
    true;
#endif

/// Whether there is an instruction for the largest integer not above x. Without one, attune does not use xsimd's
/// arithmetic for it, which fails under -fassociative-math.
template <class Arch>
inline constexpr bool has_floor =
#if XSIMD_WITH_NEON64
    std::is_base_of_v<xsimd::neon64, Arch>;
#elif XSIMD_WITH_SSE2
    std::is_base_of_v<xsimd::sse4_1, Arch> || std::is_base_of_v<xsimd::avx, Arch> ||
    std::is_base_of_v<xsimd::avx512f, Arch>;
#else
        false;
#endif

/// Integers in [0, 2^31) (doubles: [0, 2^51)) as integers of the same size.
template <class T, class Arch>
ATTUNE_INLINE xsimd::batch<xsimd::as_integer_t<T>, Arch> to_integers(xsimd::batch<T, Arch> const& x) {
  if constexpr (sizeof(T) == 4) {
    return xsimd::to_int(x);
  } else {  // few targets have an instruction: the lowest bits of 1.5 2^52 + x are x
    xsimd::batch<T, Arch> const lift(T(0x1.8p52));
    using integer = xsimd::as_integer_t<T>;
    return bits_as<integer>(as_computed(xsimd::batch<T, Arch>(x + lift))) - bits_as<integer>(lift);
  }
}

/// Lane l is from[at[l]]. By instructions: a call of xsimd's is not always inlined.
template <class T, class Arch>
ATTUNE_INLINE xsimd::batch<T, Arch> gathered(T const* from, xsimd::batch<xsimd::as_integer_t<T>, Arch> const& at) {
#if XSIMD_WITH_AVX512F && !XSIMD_WITH_EMULATED
  if constexpr (std::is_base_of_v<xsimd::avx512f, Arch>) {
    if constexpr (sizeof(T) == 4)
      return _mm512_i32gather_ps(at.data, from, 4);
    else
      return _mm512_i64gather_pd(at.data, from, 8);
  } else
#endif
#if XSIMD_WITH_AVX2 && !XSIMD_WITH_EMULATED
      if constexpr (std::is_base_of_v<xsimd::avx2, Arch>) {
    if constexpr (sizeof(T) == 4)
      return _mm256_i32gather_ps(from, at.data, 4);
    else
      return _mm256_i64gather_pd(from, at.data, 8);
  } else
#endif
  {
    alignas(64) xsimd::as_integer_t<T> places[xsimd::batch<T, Arch>::size];
    alignas(64) T lanes[xsimd::batch<T, Arch>::size];
    at.store_aligned(places);
    for (std::size_t l = 0; l < xsimd::batch<T, Arch>::size; ++l) lanes[l] = from[places[l]];
    return xsimd::batch<T, Arch>::load_aligned(lanes);
  }
}

/// The square root, correctly rounded.
template <class T, class Arch>
ATTUNE_INLINE xsimd::batch<T, Arch> square_root(xsimd::batch<T, Arch> const& x) {
#if XSIMD_WITH_NEON64
  if constexpr (std::is_base_of_v<xsimd::neon64,
                                  Arch>) {  // xsimd multiplies by an estimate of 1 / sqrt(x), which is NaN at infinity
    if constexpr (std::is_same_v<T, float>)
      return vsqrtq_f32(x.data);
    else
      return vsqrtq_f64(x.data);
  } else
#elif XSIMD_WITH_NEON
  if constexpr (std::is_base_of_v<xsimd::neon, Arch>) {  // 32 bits: no such instruction
    alignas(16) T lanes[xsimd::batch<T, Arch>::size];
    x.store_aligned(lanes);
    for (T& lane : lanes) lane = std::sqrt(lane);
    return xsimd::batch<T, Arch>::load_aligned(lanes);
  } else
#endif
    return xsimd::sqrt(x);
}

/// a / b, correctly rounded except on 32-bit ARM, which has no instruction for it. xsimd's quotient of floats on ARM
/// multiplies by an estimate.
template <class T, class Arch>
ATTUNE_INLINE xsimd::batch<T, Arch> quotient(xsimd::batch<T, Arch> const& a, xsimd::batch<T, Arch> const& b) {
#if XSIMD_WITH_NEON64
  if constexpr (std::is_base_of_v<xsimd::neon64, Arch> && std::is_same_v<T, float>)
    return vdivq_f32(a.data, b.data);
  else
#endif
    return a / b;
}

}  // namespace attune::simd

ATTUNE_INTRINSICS_END
