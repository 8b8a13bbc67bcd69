// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   sum[lane] = fma(a[2 lane], b[2 lane], fma(a[2 lane + 1], b[2 lane + 1], sum[lane]))      a, b of bf16, sums of fp32
//
// The instructions of AVX-512 BF16 and nothing else: no other file names them. VDPBF16PS multiplies two pairs per lane,
// the odd one first. Each product is exact (8 x 8 bits) and is added with one rounding, to nearest. Numbers below
// 2^-126 count as 0, with their sign, in the inputs and in each of the two sums, whatever rounding mode and flags the
// thread has set. VCVTNEPS2BF16 rounds to nearest, ties to even, and reads numbers below 2^-126 as 0.
// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, VDPBF16PS and VCVTNEPS2BF16; AMD's
// Zen 4 gives the same bits (tests/unit/exec/cpu/bf16_test.cpp).
#pragma once

#include <bit>
#include <cstdint>

#include <attune/core/storage.hpp>
#include <attune/core/xsimd.hpp>

#if defined(__AVX512BF16__) && defined(__AVX512BW__)
#include <immintrin.h>
#endif

namespace attune::exec_cpu {

/// Whether this code is compiled for a processor that multiplies pairs of bf16.
inline constexpr bool multiplies_bf16 =
#if defined(__AVX512BF16__) && defined(__AVX512BW__)
    true;
#else
    false;
#endif

ATTUNE_INTRINSICS_BEGIN
#if defined(__AVX512BF16__) && defined(__AVX512BW__)

/// 32 numbers: 16 pairs.
struct bf16_pairs {
  __m512i data;

  static ATTUNE_INLINE bf16_pairs zero() { return {_mm512_setzero_si512()}; }
  /// 32 contiguous numbers.
  static ATTUNE_INLINE bf16_pairs at(bfloat16 const* from) { return {_mm512_loadu_si512(from)}; }
  /// The first n of 32 contiguous numbers, then zeros; nothing else is read.
  static ATTUNE_INLINE bf16_pairs at(bfloat16 const* from, index_t n) {
    return {_mm512_maskz_loadu_epi16(__mmask32((std::uint64_t(1) << n) - 1), from)};
  }
  /// 16 contiguous numbers from each of two places.
  static ATTUNE_INLINE bf16_pairs at_both(bfloat16 const* first, bfloat16 const* second) {
    return {_mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<__m256i const*>(first))),
                               _mm256_loadu_si256(reinterpret_cast<__m256i const*>(second)), 1)};
  }
  /// The first n of 16 contiguous numbers, then zeros, from each of two places; nothing else is read.
  static ATTUNE_INLINE bf16_pairs at_both(bfloat16 const* first, bfloat16 const* second, index_t n) {
    __mmask32 const some = (1u << n) - 1;  // a mask of 32 bits: this needs no AVX512VL
    return {_mm512_inserti64x4(_mm512_maskz_loadu_epi16(some, first),
                               _mm512_castsi512_si256(_mm512_maskz_loadu_epi16(some, second)), 1)};
  }
  /// 32 numbers as pack_pairs has stored them.
  static ATTUNE_INLINE bf16_pairs packed(float const* from) { return {_mm512_load_si512(from)}; }
  /// One pair, repeated in all places.
  static ATTUNE_INLINE bf16_pairs everywhere(std::uint32_t const* pair) { return {_mm512_set1_epi32(int(*pair))}; }

  /// Pairs of a number of a and one of b: for numbers 0-3, 8-11, 16-19, 24-27; then for the numbers between. See
  /// `in_order`.
  friend ATTUNE_INLINE bf16_pairs pairs_of_first_fours(bf16_pairs a, bf16_pairs b) {
    return {_mm512_unpacklo_epi16(a.data, b.data)};
  }
  friend ATTUNE_INLINE bf16_pairs pairs_of_second_fours(bf16_pairs a, bf16_pairs b) {
    return {_mm512_unpackhi_epi16(a.data, b.data)};
  }
};

/// sum + the products of each pair.
template <class Arch>
ATTUNE_INLINE xsimd::batch<float, Arch> add_products(xsimd::batch<float, Arch> const& sum, bf16_pairs a, bf16_pairs b) {
  return _mm512_dpbf16_ps(sum.data, std::bit_cast<__m512bh>(a.data), std::bit_cast<__m512bh>(b.data));
}

/// [a0 + a1, a2 + a3, b0 + b1, b2 + b3], where the elements are quarters.
template <class Arch>
ATTUNE_INLINE xsimd::batch<float, Arch> eighths_added(xsimd::batch<float, Arch> const& a,
                                                      xsimd::batch<float, Arch> const& b) {
  return _mm512_add_ps(_mm512_shuffle_f32x4(a.data, b.data, 0x88), _mm512_shuffle_f32x4(a.data, b.data, 0xdd));
}
/// [a0 + a2, a1 + a3, b0 + b2, b1 + b3] in each quarter.
template <class Arch>
ATTUNE_INLINE xsimd::batch<float, Arch> halves_added(xsimd::batch<float, Arch> const& a,
                                                     xsimd::batch<float, Arch> const& b) {
  return _mm512_add_ps(_mm512_shuffle_ps(a.data, b.data, 0x44), _mm512_shuffle_ps(a.data, b.data, 0xee));
}
/// [a0 + a1, a2 + a3, b0 + b1, b2 + b3] in each quarter.
template <class Arch>
ATTUNE_INLINE xsimd::batch<float, Arch> even_lanes(xsimd::batch<float, Arch> const& a,
                                                   xsimd::batch<float, Arch> const& b) {
  return _mm512_add_ps(_mm512_shuffle_ps(a.data, b.data, 0x88), _mm512_shuffle_ps(a.data, b.data, 0xdd));
}

/// Sums of 16 keys in the order of the keys. contract_eight and sums_of_quarters leave them in the order 0, 2, 8, 10;
/// 1, 3, 9, 11; 4, 6, 12, 14; 5, 7, 13, 15.
template <class Arch>
ATTUNE_INLINE xsimd::batch<float, Arch> in_order_of_eights(xsimd::batch<float, Arch> const& x) {
  return _mm512_permutexvar_ps(_mm512_setr_epi32(0, 4, 1, 5, 8, 12, 9, 13, 2, 6, 3, 7, 10, 14, 11, 15), x.data);
}

/// Puts sums of products with pairs_of_first_fours and pairs_of_second_fours in order: numbers 0-15 and 16-31.
template <class Arch>
ATTUNE_INLINE void in_order(xsimd::batch<float, Arch>& first, xsimd::batch<float, Arch>& second) {
  __m512d const a = _mm512_castps_pd(first.data), b = _mm512_castps_pd(second.data);
  first = _mm512_castpd_ps(_mm512_permutex2var_pd(a, _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11), b));
  second = _mm512_castpd_ps(_mm512_permutex2var_pd(a, _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15), b));
}

/// Pairs of a number of `first` and one of `second`, rounded.
template <class Arch>
ATTUNE_INLINE bf16_pairs rounded_pairs(xsimd::batch<float, Arch> const& first,
                                       xsimd::batch<float, Arch> const& second) {
  auto const in_a_row = std::bit_cast<__m512i>(_mm512_cvtne2ps_pbh(second.data, first.data));
  alignas(64) static constexpr std::uint16_t order[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                          8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return {_mm512_permutexvar_epi16(_mm512_load_si512(order), in_a_row)};
}

/// Stores 16 numbers, rounded, as 8 pairs at `to`.
template <class Arch>
ATTUNE_INLINE void store_rounded(std::uint32_t* to, xsimd::batch<float, Arch> const& x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), std::bit_cast<__m256i>(_mm512_cvtneps_pbh(x.data)));
}

#endif
ATTUNE_INTRINSICS_END

}  // namespace attune::exec_cpu
