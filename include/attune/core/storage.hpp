// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   bfloat16   1 sign, 8 exponent, 7 fraction bits        float16   1, 5, 10
//
// Storage types for tensors. Every operation happens in float. The bits are the same as in every other library's bf16
// and fp16, so a view of a foreign buffer needs no copy, only a reinterpret_cast.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>

#include <attune/config.hpp>
#include <attune/core/tensor.hpp>

#if defined(__F16C__) || defined(__AVX2__)
#include <immintrin.h>
#endif

namespace attune {

/// The upper half of a float. From float: to nearest, ties to even; NaN stays NaN and keeps its sign and leading bits.
struct bfloat16 {
  std::uint16_t bits = 0;  ///< the stored bits: sign, exponent, fraction

  constexpr bfloat16() = default;
  /// Rounds x to this format.
  ATTUNE_HD constexpr explicit bfloat16(float x) {
    auto const u = __builtin_bit_cast(std::uint32_t, x);
    bool const nan = (u & 0x7fffffffu) > 0x7f800000u;
    bits = std::uint16_t((nan ? u | 0x400000u : u + 0x7fffu + (u >> 16 & 1u)) >> 16);
  }
  /// The stored number, exactly.
  ATTUNE_HD constexpr explicit operator float() const { return __builtin_bit_cast(float, std::uint32_t(bits) << 16); }
};

/// IEEE 754 binary16. From float: to nearest, ties to even, subnormals included; beyond 65504 infinity; NaN stays NaN.
struct float16 {
  std::uint16_t bits = 0;  ///< the stored bits: sign, exponent, fraction

  constexpr float16() = default;
  /// Rounds x to this format.
  ATTUNE_HD constexpr explicit float16(float x) {
    auto const all = __builtin_bit_cast(std::uint32_t, x);
    std::uint32_t const u = all & 0x7fffffffu;
    std::uint32_t to;
    if (u > 0x7f800000u)
      to = 0x7e00u | (u >> 13 & 0x1ffu);
    else if (u >= 0x477ff000u)  // halfway from 65504 to 65536: ties to even gives infinity
      to = 0x7c00u;
    else if (u < 0x38800000u)  // subnormal: near 0.5 a float has the spacing 2^-24
      to = __builtin_bit_cast(std::uint32_t, __builtin_bit_cast(float, u) + 0.5f) - 0x3f000000u;
    else
      to = (u + 0xfffu + (u >> 13 & 1u) - 0x38000000u) >> 13;
    bits = std::uint16_t(to | (all >> 16 & 0x8000u));
  }
  /// The stored number, exactly.
  ATTUNE_HD constexpr explicit operator float() const {
    constexpr std::uint32_t shift = 112u << 23;  // the difference of the exponent biases
    std::uint32_t const sign = (bits & 0x8000u) << 16, u = (bits & 0x7fffu) << 13;
    std::uint32_t to = u + shift;
    if (u >= 0x1fu << 23)  // infinity and NaN
      to += shift;
    else if (u < 1u << 23)  // 0 and subnormal
      to = __builtin_bit_cast(std::uint32_t,
                              __builtin_bit_cast(float, to + (1u << 23)) - __builtin_bit_cast(float, 113u << 23));
    return __builtin_bit_cast(float, to | sign);
  }
};

/// A type that is only stored, not computed in.
template <class T>
concept storage_only = std::same_as<T, bfloat16> || std::same_as<T, float16>;

namespace detail {
template <class T>
struct arithmetic {
  using type = T;
};
template <storage_only T>
struct arithmetic<T> {
  using type = float;
};
}  // namespace detail

/// The type that attune computes in for tensors stored as T.
template <class T>
using arithmetic_t = typename detail::arithmetic<T>::type;

ATTUNE_INTRINSICS_BEGIN
namespace detail {

/// N numbers of T in one vector register, or in several.
template <class T, int N>
struct vector_of {
  typedef T type __attribute__((vector_size(N * sizeof(T))));
};

/// N stored numbers as floats, exactly.
template <int N, storage_only S>
ATTUNE_INLINE auto widen_some(S const* from) {
  using floats = typename vector_of<float, N>::type;
  if constexpr (std::same_as<S, bfloat16>) {
// g++ 12 compiles the conversion below to six instructions instead of two (a load that extends, and a shift).
#if defined(__AVX512F__)
    if constexpr (N == 16)
      return std::bit_cast<floats>(
          _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<__m256i const*>(from))), 16));
#endif
#if defined(__AVX2__)
    if constexpr (N == 8)
      return std::bit_cast<floats>(
          _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<__m128i const*>(from))), 16));
#endif
    typename vector_of<std::uint16_t, N>::type bits;
    std::memcpy(&bits, from, sizeof bits);
    return std::bit_cast<floats>(__builtin_convertvector(bits, typename vector_of<std::uint32_t, N>::type) << 16);
  } else {
#if defined(__AVX512F__)
    if constexpr (N == 16)
      return std::bit_cast<floats>(_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<__m256i const*>(from))));
#endif
#if defined(__F16C__)
    if constexpr (N == 8)
      return std::bit_cast<floats>(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<__m128i const*>(from))));
    if constexpr (N == 4)
      return std::bit_cast<floats>(_mm_cvtph_ps(_mm_loadl_epi64(reinterpret_cast<__m128i const*>(from))));
#endif
    floats to;
    for (int l = 0; l < N; ++l) to[l] = float(from[l]);
    return to;
  }
}

/// The number of floats in a register.
inline constexpr int converted_together =
#if defined(__AVX512F__)
    16;
#elif defined(__AVX__)
    8;
#else
    4;
#endif

/// to[c] = from[c] for n numbers, exactly.
template <storage_only S>
ATTUNE_NOINLINE void widen(S const* ATTUNE_RESTRICT from, float* ATTUNE_RESTRICT to, index_t n) {
  index_t c = 0;
  for (; c + converted_together <= n; c += converted_together) {
    auto const some = widen_some<converted_together>(from + c);
    std::memcpy(to + c, &some, sizeof some);
  }
  for (; c < n; ++c) to[c] = float(from[c]);
}
/// to[c] = from[c], rounded.
template <storage_only S>
ATTUNE_NOINLINE void narrow(float const* ATTUNE_RESTRICT from, S* ATTUNE_RESTRICT to, index_t n) {
  index_t c = 0;
#if defined(__F16C__)
  if constexpr (std::same_as<S, float16>)
    for (; c + 8 <= n; c += 8)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + c),
                       _mm256_cvtps_ph(_mm256_loadu_ps(from + c), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#endif
  for (; c < n; ++c) to[c] = S(from[c]);
}

}  // namespace detail
ATTUNE_INTRINSICS_END
}  // namespace attune
