// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   |round(x) - x| <= unit |x| + step / 2        unit: 2^-53, 2^-24, 2^-11, 2^-8 for fp64, fp32, fp16, bf16
//
// The effect of rounding to a number format, and the formats that a kernel uses.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include <attune/core/error.hpp>
#include <attune/core/storage.hpp>

namespace attune::certify {

/// A number format in which a kernel stores or computes.
enum class storage { fp64, fp32, fp16, bf16 };

/// "fp64", "fp32", "fp16" or "bf16".
constexpr char const* name_of(storage s) {
  switch (s) {
    case storage::fp64:
      return "fp64";
    case storage::fp32:
      return "fp32";
    case storage::fp16:
      return "fp16";
    case storage::bf16:
      return "bf16";
  }
  return "";
}

/// The format of an element type of attune's tensors.
template <class E>
constexpr storage storage_of() {
  using T = std::remove_const_t<E>;
  static_assert(std::is_same_v<T, double> || std::is_same_v<T, float> || storage_only<T>,
                "attune: outputs are stored as double, float, bfloat16 or float16");
  return std::is_same_v<T, double>    ? storage::fp64
         : std::is_same_v<T, float>   ? storage::fp32
         : std::is_same_v<T, float16> ? storage::fp16
                                      : storage::bf16;
}

/// A binary floating-point format, rounding to nearest.
struct number_format {
  double unit;     ///< half the spacing at 1: the largest relative rounding error of a normal number
  double least;    ///< the smallest normal number
  double step;     ///< spacing of the subnormal numbers
  double largest;  ///< larger numbers become infinity
};
/// The limits of a format.
constexpr number_format format_of(storage s) {
  switch (s) {
    case storage::fp64:
      return {0x1p-53, 0x1p-1022, 0x1p-1074, (std::numeric_limits<double>::max)()};
    case storage::fp32:
      return {0x1p-24, 0x1p-126, 0x1p-149, 0x1.fffffep127};
    case storage::fp16:
      return {0x1p-11, 0x1p-14, 0x1p-24, 65504};
    case storage::bf16:
      return {0x1p-8, 0x1p-126, 0x1p-133, 0x1.fep127};
  }
  return {};
}

/// The nearest number of a format (fp64 and fp32: of the type; 16 bits: by way of float, like storing).
inline double rounded_to(storage s, double x) {
  switch (s) {
    case storage::fp64:
      return x;
    case storage::fp32:
      return double(float(x));
    case storage::fp16:
      return double(float(float16(float(x))));
    case storage::bf16:
      return double(float(bfloat16(float(x))));
  }
  return x;
}

/// The formats that a kernel uses, and where. The defaults are the usual ones: 16-bit outputs are accumulated in fp32,
/// and probabilities are rounded to the 16 bits of the output before they are multiplied with the values (tensor cores,
/// and PyTorch on CPUs, do so).
struct precision {
  storage out = storage::fp32;         ///< of the stored output
  storage arithmetic = storage::fp32;  ///< of everything else; lse and ground weight are stored in it
  storage weights = storage::fp32;     ///< of the probabilities, when they are multiplied with the values
  double rounding = 1;                 ///< the error of an operation, in roundings of `arithmetic`
  double lse_roundings = 0;            ///< of an lse by which rows are normalized or merged; 0: by sums alone

  constexpr precision() = default;
  /// The usual formats for an output of this type: fp64 is computed in fp64, everything else in fp32.
  constexpr precision(storage stored)
      : out(stored), arithmetic(stored == storage::fp64 ? storage::fp64 : storage::fp32), weights(stored) {}
  /// All formats: of the output, of the arithmetic and of the probabilities.
  constexpr precision(storage stored, storage computed, storage probabilities)
      : out(stored), arithmetic(computed), weights(probabilities) {}

  /// The formats of `cuda<float>`, which multiplies sums of two fp16 on tensor cores: the error of an operation is at
  /// most four roundings of fp32. docs/reference/error_bounds.md derives it, and says what is not in it.
  static constexpr precision split_products() {
    precision to;
    to.rounding = 4;
    return to;
  }
};

}  // namespace attune::certify
