// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   sum[lane] = fma(low(a), low(b), fma(high(a), high(b), sum[lane]))      a, b: two bf16 numbers per lane
//
// Products of pairs of bf16 numbers in one interface, a unit: by the instruction of a machine, or by a twin with the
// same bits (the formula is for AVX-512; products/bfdot.hpp has the one of ARM). Also how numbers become pairs: two
// features of a query or key, or one feature of the values of two keys.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <attune/core/simd_math.hpp>
#include <attune/core/storage.hpp>
#include <attune/exec/cpu/products/bf16.hpp>
#include <attune/exec/cpu/products/bfdot.hpp>
#include <attune/exec/cpu/products/microkernel.hpp>
#include <attune/exec/cpu/products/tiling.hpp>

namespace attune {

/// Products of bf16 by the instructions of the machine that the code is compiled for: AVX-512 BF16 (`VDPBF16PS`,
/// `VCVTNE2PS2BF16`), or BF16 of ARMv8.6 (`BFDOT`, `BFMMLA`, `BFCVTN`). See `cpu_bf16_products`.
struct bf16_instructions;

/// The products of AVX-512 BF16 by other instructions, on any machine: the same bits, slower than float products. For
/// results that a machine with the instructions would give. See `cpu_bf16_products`.
struct bf16_emulated;

/// The same for the products of ARM: the bits of `BFDOT`, which `BFMMLA` has too, on any machine.
struct bfdot_emulated;

namespace exec_cpu {

/// Two bf16 numbers: the first in the lower half.
using number_pair = std::uint32_t;
ATTUNE_INLINE number_pair paired(bfloat16 first, bfloat16 second) {
  return number_pair(first.bits) | number_pair(second.bits) << 16;
}

/// x with numbers below 2^-126 replaced by 0 of the same sign, as VDPBF16PS reads and writes them.
template <class B>
ATTUNE_INLINE B flushed(B const& x) {
  return simd::select(simd::abs(x) < B(0x1p-126f), simd::sign_of(x), x);
}
/// Two batches of factors: the lower and the upper number of each pair.
template <class Arch>
struct two_floats {
  xsimd::batch<float, Arch> low, high;
  static ATTUNE_INLINE two_floats of(xsimd::batch<number_pair, Arch> const& x) {
    using bits = xsimd::batch<number_pair, Arch>;
    return {simd::bits_as<float>(simd::shifted_up(x, 16)), simd::bits_as<float>(bits(x & bits(0xffff0000u)))};
  }
};
/// a b + c with one rounding, also on a machine that has no such instruction.
template <class B>
ATTUNE_INLINE B fused(B const& a, B const& b, B const& c) {
#if defined(__FMA__) || defined(__AVX512F__) || defined(__ARM_FEATURE_FMA)
  return simd::multiply_add(a, b, c);
#else
  alignas(64) float x[B::size], y[B::size], z[B::size];
  a.store_aligned(x), b.store_aligned(y), c.store_aligned(z);
  for (std::size_t l = 0; l < B::size; ++l) z[l] = __builtin_fmaf(x[l], y[l], z[l]);
  return B::load_aligned(z);
#endif
}

}  // namespace exec_cpu

struct bf16_emulated {
  static constexpr bool there = true;            ///< whether this code is compiled for a machine that can
  using twin = bf16_emulated;                    ///< the same bits on any machine
  static constexpr bool lent() { return true; }  ///< whether the system lends it
  static void enter(char const*) {}              ///< a call by the unit begins: throws where the system refuses it
  template <class Arch>
  static constexpr bool of_vectors = true;  ///< whether it works on batches of Arch

  /// sum + the products of each pair, the upper one first.
  template <class Arch>
  static ATTUNE_INLINE xsimd::batch<float, Arch> add_products(xsimd::batch<float, Arch> const& sum,
                                                              xsimd::batch<std::uint32_t, Arch> const& a,
                                                              xsimd::batch<std::uint32_t, Arch> const& b) {
    using floats = xsimd::batch<float, Arch>;
    floats const upper = exec_cpu::flushed(exec_cpu::fused(high(a), high(b), exec_cpu::flushed(sum)));
    return exec_cpu::flushed(exec_cpu::fused(low(a), low(b), upper));
  }
  /// The same sum for factors that are floats. Zeros and normal numbers that bf16 can hold give the bits of
  /// `add_products`.
  template <class Arch>
  static ATTUNE_INLINE xsimd::batch<float, Arch> add_floats(xsimd::batch<float, Arch> const& sum,
                                                            exec_cpu::two_floats<Arch> const& a,
                                                            exec_cpu::two_floats<Arch> const& b) {
    using exec_cpu::flushed, exec_cpu::fused;
    return flushed(fused(a.low, flushed(b.low), flushed(fused(a.high, flushed(b.high), sum))));
  }
  /// Pairs of a number of `first` and one of `second`, rounded to nearest, ties to even.
  template <class Arch>
  static ATTUNE_INLINE xsimd::batch<std::uint32_t, Arch> rounded(xsimd::batch<float, Arch> const& first,
                                                                 xsimd::batch<float, Arch> const& second) {
    using bits = xsimd::batch<std::uint32_t, Arch>;
    auto const round = [](xsimd::batch<float, Arch> const& x) {
      auto const u = simd::bits_as<std::uint32_t>(exec_cpu::flushed(x));
      bits const nearest = u + bits(0x7fffu) + (simd::shifted_down(u, 16) & bits(1u));
      return simd::bits_as<std::uint32_t>(
          simd::select(x == x, simd::bits_as<float>(nearest), simd::bits_as<float>(bits(u | bits(0x400000u)))));
    };
    return simd::shifted_down(round(first), 16) | (round(second) & bits(0xffff0000u));
  }

 private:
  template <class Arch>
  static ATTUNE_INLINE xsimd::batch<float, Arch> low(xsimd::batch<std::uint32_t, Arch> const& x) {
    return exec_cpu::flushed(simd::bits_as<float>(simd::shifted_up(x, 16)));
  }
  template <class Arch>
  static ATTUNE_INLINE xsimd::batch<float, Arch> high(xsimd::batch<std::uint32_t, Arch> const& x) {
    using bits = xsimd::batch<std::uint32_t, Arch>;
    return exec_cpu::flushed(simd::bits_as<float>(bits(x & bits(0xffff0000u))));
  }
};

struct bfdot_emulated {
  static constexpr bool there = true;
  using twin = bfdot_emulated;
  static constexpr bool lent() { return true; }
  static void enter(char const*) {}
  template <class Arch>
  static constexpr bool of_vectors = true;

  /// sum + (low product + high product): each sum is rounded to odd.
  template <class Arch>
  static ATTUNE_INLINE xsimd::batch<float, Arch> add_products(xsimd::batch<float, Arch> const& sum,
                                                              xsimd::batch<std::uint32_t, Arch> const& a,
                                                              xsimd::batch<std::uint32_t, Arch> const& b) {
    return add_floats(sum, exec_cpu::two_floats<Arch>::of(a), exec_cpu::two_floats<Arch>::of(b));
  }
  /// The same sum for factors that are floats. Zeros and normal numbers that bf16 can hold give the bits of
  /// `add_products`.
  template <class Arch>
  static ATTUNE_INLINE xsimd::batch<float, Arch> add_floats(xsimd::batch<float, Arch> const& sum,
                                                            exec_cpu::two_floats<Arch> const& a,
                                                            exec_cpu::two_floats<Arch> const& b) {
    using namespace exec_cpu;
    auto const product = [](auto const& x, auto const& y) {
      return flushed(simd::as_computed(flushed(x) * flushed(y)));
    };
    return sum_to_odd(flushed(sum), sum_to_odd(product(a.low, b.low), product(a.high, b.high)));
  }
  /// Pairs of a number of `first` and one of `second`, rounded to nearest, ties to even.
  template <class Arch>
  static ATTUNE_INLINE xsimd::batch<std::uint32_t, Arch> rounded(xsimd::batch<float, Arch> const& first,
                                                                 xsimd::batch<float, Arch> const& second) {
    return bf16_emulated::rounded(first, second);
  }
};

struct bf16_instructions {
  static constexpr bool there = exec_cpu::multiplies_bf16 || exec_cpu::has_bfdot;
  static constexpr bool lent() { return true; }
  static void enter(char const*) {}
  using twin = std::conditional_t<exec_cpu::has_bfdot, bfdot_emulated, bf16_emulated>;
  template <class Arch>
  static constexpr bool of_vectors =
      exec_cpu::has_bfdot ? exec_cpu::bfdot_vectors<Arch> : xsimd::batch<float, Arch>::size == 16;

  /// The sum of `add_products` for factors that are floats.
  template <class Arch>
  static ATTUNE_INLINE xsimd::batch<float, Arch> add_floats(xsimd::batch<float, Arch> const& sum,
                                                            exec_cpu::two_floats<Arch> const& a,
                                                            exec_cpu::two_floats<Arch> const& b) {
    return twin::add_floats(sum, a, b);
  }
#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC) && XSIMD_WITH_NEON64
  /// sum + (low product + high product): each sum is rounded to odd.
  template <class Arch>
  static ATTUNE_INLINE xsimd::batch<float, Arch> add_products(xsimd::batch<float, Arch> const& sum,
                                                              xsimd::batch<std::uint32_t, Arch> const& a,
                                                              xsimd::batch<std::uint32_t, Arch> const& b) {
    return exec_cpu::bfdot(sum, a, b);
  }
  /// Pairs of a number of `first` and one of `second`, rounded to nearest, ties to even.
  template <class Arch>
  static ATTUNE_INLINE xsimd::batch<std::uint32_t, Arch> rounded(xsimd::batch<float, Arch> const& first,
                                                                 xsimd::batch<float, Arch> const& second) {
    return exec_cpu::bfcvt_pairs(exec_cpu::flushed(first), exec_cpu::flushed(second));
  }
#elif defined(__AVX512BF16__) && defined(__AVX512BW__)
  /// sum + the products of each pair, the upper one first.
  template <class Arch>
  static ATTUNE_INLINE xsimd::batch<float, Arch> add_products(xsimd::batch<float, Arch> const& sum,
                                                              xsimd::batch<std::uint32_t, Arch> const& a,
                                                              xsimd::batch<std::uint32_t, Arch> const& b) {
    return exec_cpu::add_products(sum, exec_cpu::bf16_pairs{a.data}, exec_cpu::bf16_pairs{b.data});
  }
  /// Pairs of a number of `first` and one of `second`, rounded to nearest, ties to even.
  template <class Arch>
  static ATTUNE_INLINE xsimd::batch<std::uint32_t, Arch> rounded(xsimd::batch<float, Arch> const& first,
                                                                 xsimd::batch<float, Arch> const& second) {
    return exec_cpu::rounded_pairs(first, second).data;
  }
#endif
};

namespace exec_cpu {

template <class Unit>
struct pair_step;
template <>
inline constexpr bool by_first_lane<pair_step<bf16_instructions>> = has_bfdot;

/// For `multiply`: adds the products of a pair that is the same in all lanes and of a batch of pairs.
template <class Unit>
struct pair_step {
  static constexpr int numbers = 2;  ///< in an element of the operands
  template <class Arch>
  ATTUNE_INLINE xsimd::batch<float, Arch> operator()(xsimd::batch<number_pair, Arch> const& x,
                                                     xsimd::batch<number_pair, Arch> const& b,
                                                     xsimd::batch<float, Arch> const& acc, index_t) const {
#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC) && XSIMD_WITH_NEON64
    if constexpr (by_first_lane<pair_step>)
      return bfdot_by_first(acc, x, b);
    else
#endif
      return Unit::add_products(acc, x, b);
  }
};

/// How many pairs hold n numbers.
constexpr index_t pairs_of(index_t n) { return (n + 1) / 2; }

namespace detail {

inline constexpr int rounded_together = 16;

/// 16 numbers, rounded to nearest, ties to even.
ATTUNE_INLINE void round_some(bfloat16* to, float const* from) {
  using attune::detail::vector_of;
  using bits = typename vector_of<std::uint32_t, rounded_together>::type;
  bits u;
  std::memcpy(&u, from, sizeof u);
  bits const nan = bits((u & 0x7fffffffu) > 0x7f800000u);
  bits const rounded = ((u + 0x7fffu + (u >> 16 & 1u)) & ~nan) | ((u | 0x400000u) & nan);
  auto const half = __builtin_convertvector(rounded >> 16, typename vector_of<std::uint16_t, rounded_together>::type);
  std::memcpy(static_cast<void*>(to), &half, sizeof half);
}

}  // namespace detail

/// to[c] = x[c * step] for c < n, rounded where it has more bits. `to` holds an even number of them: the last one may
/// be 0.
template <class S>
ATTUNE_NOINLINE void pair_row(bfloat16* to, S const* x, index_t step, index_t n) {
  index_t c = 0;
  if constexpr (std::is_same_v<S, bfloat16>) {
    if (step == 1) c = n, std::memcpy(static_cast<void*>(to), x, std::size_t(n) * sizeof *to);
  } else if constexpr (std::is_same_v<S, float>) {
    if (step == 1)
      for (; c + detail::rounded_together <= n; c += detail::rounded_together) detail::round_some(to + c, x + c);
  }
  for (; c < n; ++c) to[c] = bfloat16(float(x[c * step]));
  if (n % 2 != 0) to[n] = bfloat16();
}

/// to[d] = the pair (first[d], second[d]) for d < n.
ATTUNE_NOINLINE inline void pair_rows(number_pair* ATTUNE_RESTRICT to, bfloat16 const* ATTUNE_RESTRICT first,
                                      bfloat16 const* ATTUNE_RESTRICT second, index_t n) {
  using attune::detail::vector_of;
  constexpr int together = 16;
  using halves = typename vector_of<std::uint16_t, together>::type;
  using pairs = typename vector_of<number_pair, together>::type;
  index_t d = 0;
  for (; d + together <= n; d += together) {
    halves a, b;
    std::memcpy(&a, first + d, sizeof a), std::memcpy(&b, second + d, sizeof b);
    pairs const both = __builtin_convertvector(a, pairs) | __builtin_convertvector(b, pairs) << 16;
    std::memcpy(to + d, &both, sizeof both);
  }
  for (; d < n; ++d) to[d] = paired(first[d], second[d]);
}

/// packed[c][query] = the pair of features 2 c and 2 c + 1, for queries [first, first + Lanes) of one head; lanes past
/// the end repeat the last query.
template <int Lanes>
ATTUNE_NOINLINE void pack_query_pairs(number_pair* packed, tensor<float const> const& x, index_t b, index_t h,
                                      index_t first) {
  index_t const width = x.extents().feature, queries = x.extents().position, step = x.steps().feature;
  for (index_t l = 0; l < Lanes; ++l) {
    float const* const from = x.row(b, h, first + l < queries ? first + l : queries - 1);
    for (index_t d = 0; d < width; d += 2)
      packed[d / 2 * Lanes + l] =
          paired(bfloat16(from[d * step]), d + 1 < width ? bfloat16(from[(d + 1) * step]) : bfloat16());
  }
}

/// True if n pairs contain no NaN and no infinity.
ATTUNE_NOINLINE inline bool finite_pairs(number_pair const* x, index_t n) {
  number_pair worst = 0;  // a bit above each exponent is set by adding one to an exponent of ones
  for (index_t c = 0; c < n; ++c) {
    number_pair const low = (x[c] & 0x7f80u) + 0x80u, high = (x[c] >> 16 & 0x7f80u) + 0x80u;
    worst |= low | high;
  }
  return (worst & 0x8000u) == 0;
}

/// The pair with NaN and infinities replaced by 0.
constexpr number_pair finite_or_zero(number_pair x) {
  if ((x & 0x7f80u) == 0x7f80u) x &= 0xffff0000u;
  if ((x & 0x7f800000u) == 0x7f800000u) x &= 0xffffu;
  return x;
}

}  // namespace exec_cpu
}  // namespace attune
