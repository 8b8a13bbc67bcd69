// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   float8_e4m3fn   1 sign, 4 exponent, 3 fraction bits; largest 448, no infinity   float8_e5m2  1, 5, 2; largest 57344
//
// The two 8-bit formats in which caches store keys and values. attune never computes in them.
// Source: OCP 8-bit Floating Point Specification (OFP8), revision 1.0; conversions without saturation, as PyTorch's and
//         ml_dtypes'.
#pragma once

#include <bit>
#include <cstdint>

namespace attune {

namespace detail {

/// A float in 8 bits, to nearest, ties to even. Codes from `Overflow` on are numbers that are too large.
template <int Fraction, int Bias, unsigned Overflow, unsigned Nan>
constexpr std::uint8_t encode_float8(float x) {
  auto const all = std::bit_cast<std::uint32_t>(x);
  std::uint32_t const u = all & 0x7fffffffu, sign = all >> 24 & 0x80u;
  if (u > 0x7f800000u) return std::uint8_t(sign | Nan);
  constexpr std::uint32_t least = std::uint32_t(128 - Bias) << 23;  // the smallest normal number, 2^(1 - Bias)
  // How many bits of the significand, leading one included, are rounded away; one more for each binade below `least`.
  std::uint32_t const lower = u < least ? (least >> 23) - (u >> 23) : 0,
                      shift = (23 - Fraction) + (lower < 8 ? lower : 8);
  std::uint32_t const exact = u < least ? (u & 0x7fffffu) | (u >> 23 != 0 ? 0x800000u : 0u) : u - (least - 0x800000u);
  std::uint32_t const code = (exact + (1u << (shift - 1)) - 1 + (exact >> shift & 1u)) >> shift;
  return std::uint8_t(sign | (code < Overflow ? code : Overflow));
}

/// The float of a code, exactly. The caller handles the codes of infinity and NaN.
template <int Fraction, int Bias>
constexpr float decode_float8(std::uint8_t bits) {
  unsigned const exponent = (bits & 0x7fu) >> Fraction, fraction = bits & ((1u << Fraction) - 1);
  float const size = exponent == 0 ? float(fraction) * std::bit_cast<float>(std::uint32_t(128 - Bias - Fraction) << 23)
                                   : std::bit_cast<float>((exponent + 127 - Bias) << 23 | fraction << (23 - Fraction));
  return (bits & 0x80u) != 0 ? -size : size;
}

}  // namespace detail

/// From float: to nearest, ties to even, subnormals included; beyond 448 (from 464 on, ties down) and infinity: NaN.
struct float8_e4m3fn {
  std::uint8_t bits = 0;  ///< the stored byte: sign, exponent, fraction

  constexpr float8_e4m3fn() = default;
  /// Rounds x to this format.
  constexpr explicit float8_e4m3fn(float x) : bits(detail::encode_float8<3, 7, 0x7f, 0x7f>(x)) {}
  /// The stored number, exactly; NaN stays NaN.
  constexpr explicit operator float() const {
    return (bits & 0x7fu) == 0x7fu ? std::bit_cast<float>(0x7fc00000u | (bits & 0x80u) << 24)
                                   : detail::decode_float8<3, 7>(bits);
  }
};

/// From float: to nearest, ties to even, subnormals included; beyond 57344 (from 61440 on) infinity; NaN stays NaN.
struct float8_e5m2 {
  std::uint8_t bits = 0;  ///< the stored byte: sign, exponent, fraction

  constexpr float8_e5m2() = default;
  /// Rounds x to this format.
  constexpr explicit float8_e5m2(float x) : bits(detail::encode_float8<2, 15, 0x7c, 0x7e>(x)) {}
  /// The stored number, exactly; infinities stay infinite, NaN stays NaN.
  constexpr explicit operator float() const {
    if ((bits & 0x7fu) < 0x7cu) return detail::decode_float8<2, 15>(bits);
    std::uint32_t const size = (bits & 0x7fu) == 0x7cu ? 0x7f800000u : 0x7fc00000u;
    return std::bit_cast<float>(size | (bits & 0x80u) << 24);
  }
};

}  // namespace attune
