// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   sum[lane] = odd(sum[lane] + odd(a[2 lane] b[2 lane] + a[2 lane + 1] b[2 lane + 1]))    a, b of bf16, sums of fp32
//
// The instructions of ARM for bf16 (FEAT_BF16) and nothing else: no other file names them. BFDOT adds two exact
// products (8 x 8 bits), then the sum so far. Both additions round to odd: a sum that is no fp32 number becomes the
// neighbor whose last bit is 1. Numbers below 2^-126 count as 0, with their sign, in the inputs, products and sums,
// whatever rounding mode and flags the thread has set. Each NaN is the default one. BFCVTN rounds to nearest, ties to
// even.
// BFMMLA multiplies two rows of two pairs by two columns of two pairs. Each of its four sums has the bits of two
// BFDOTs, one after the other.
// A thread that sets FPCR.EBF (FEAT_EBF16) gets another rounding. No program begins with it.
// Source: Arm Architecture Reference Manual for A-profile (DDI 0487), BFDOT and BFMMLA, and their functions BFDotAdd,
// BFMatMulAdd, BFMul, BFAdd and BFRound.
#pragma once

#include <cstdint>
#include <type_traits>

#include <attune/core/simd_math.hpp>
#include <attune/core/storage.hpp>
#include <attune/core/xsimd.hpp>

#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#include <arm_neon.h>
#endif

namespace attune::exec_cpu {

/// Whether this code is compiled for a processor with BFDOT, BFMMLA and BFCVTN.
inline constexpr bool has_bfdot =
#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC) && XSIMD_WITH_NEON64
    true;
#else
    false;
#endif

/// Whether batches of Arch are the registers of these instructions.
template <class Arch>
inline constexpr bool bfdot_vectors =
#if XSIMD_WITH_NEON64
    std::is_base_of_v<xsimd::neon64, Arch>;
#else
    false;
#endif

#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC) && XSIMD_WITH_NEON64

/// sum + the products of each pair.
template <class Arch>
ATTUNE_INLINE xsimd::batch<float, Arch> bfdot(xsimd::batch<float, Arch> const& sum,
                                              xsimd::batch<std::uint32_t, Arch> const& a,
                                              xsimd::batch<std::uint32_t, Arch> const& b) {
  return vbfdotq_f32(sum.data, vreinterpretq_bf16_u32(a.data), vreinterpretq_bf16_u32(b.data));
}

/// The same where one pair is multiplied by all others: lane 0 of x.
template <class Arch>
ATTUNE_INLINE xsimd::batch<float, Arch> bfdot_by_first(xsimd::batch<float, Arch> const& sum,
                                                       xsimd::batch<std::uint32_t, Arch> const& x,
                                                       xsimd::batch<std::uint32_t, Arch> const& b) {
  return vbfdotq_laneq_f32(sum.data, vreinterpretq_bf16_u32(b.data), vreinterpretq_bf16_u32(x.data), 0);
}

/// sum + the products of two rows and two columns of two pairs each. sum: [row][column]; a: [row][pair]; b:
/// [column][pair]. By g++ 12 the intrinsic moves sums to other registers and back in a loop; a constraint does not.
template <class Arch>
ATTUNE_INLINE xsimd::batch<float, Arch> bfmmla(xsimd::batch<float, Arch> const& sum,
                                               xsimd::batch<std::uint32_t, Arch> const& a,
                                               xsimd::batch<std::uint32_t, Arch> const& b) {
  auto data = sum.data;
  asm("bfmmla %0.4s, %1.8h, %2.8h" : "+w"(data) : "w"(a.data), "w"(b.data));
  return data;
}

/// Pairs of a number of `first` and one of `second`, rounded.
template <class Arch>
ATTUNE_INLINE xsimd::batch<std::uint32_t, Arch> bfcvt_pairs(xsimd::batch<float, Arch> const& first,
                                                            xsimd::batch<float, Arch> const& second) {
  return vreinterpretq_u32_u16(vzip1q_u16(vreinterpretq_u16_bf16(vcvtq_low_bf16_f32(first.data)),
                                          vreinterpretq_u16_bf16(vcvtq_low_bf16_f32(second.data))));
}

#endif

/// x + y rounded to odd, as BFDOT adds: numbers below 2^-126 become 0 with their sign, each NaN the default one. x and
/// y are no subnormal numbers.
template <class B>
ATTUNE_INLINE B sum_to_odd(B const& x, B const& y) {
  using bits = xsimd::batch<std::uint32_t, typename B::arch_type>;
  // Halves where the sum may be infinite: then it is so only if the exact sum is 2^128 or more. The half of a number
  // that loses a bit there still rounds the sum to odd.
  auto const large = (simd::abs(x) > B(0x1p100f)) || (simd::abs(y) > B(0x1p100f));
  B const factor = simd::select(large, B(0.5f), B(1.0f));
  B const a = x * factor, b = y * factor;
  B const sum = simd::as_computed(B(a + b)), of_b = simd::as_computed(B(sum - a));
  B const lost = simd::as_computed(B(a - simd::as_computed(B(sum - of_b)))) + simd::as_computed(B(b - of_b));
  // If the nearest number is even, its neighbor toward the exact sum is odd.
  bits const nearest = simd::bits_as<std::uint32_t>(sum), one(1u), zero(0u);
  auto const inexact = simd::bits_as<std::uint32_t>(
      simd::select((lost > B(0.0f)) || (lost < B(0.0f)), simd::bits_as<float>(one), B(0.0f)));
  bits const step = inexact & ~nearest;  // 1 where the number moves
  auto const signs_differ = simd::exclusive_or(lost < B(0.0f), sum < B(0.0f));
  bits const inward = simd::bits_as<std::uint32_t>(
      simd::select(signs_differ, simd::bits_as<float>(bits(zero - step)), simd::bits_as<float>(step)));
  B const odd = simd::bits_as<float>(bits(nearest + inward)) * simd::select(large, B(2.0f), B(1.0f));
  B const normal = simd::select(simd::abs(odd) < B(0x1p-126f), simd::sign_of(odd), odd);
  return simd::select(normal == normal, normal, simd::bits_as<float>(bits(0x7fc00000u)));
}

}  // namespace attune::exec_cpu
