// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   least weight = 2^30 times the smallest normal number
//
// The limits of number types.
#pragma once

#include <limits>

namespace attune::detail {

/// The limits of number types that devices support, as constants: the functions of std::numeric_limits are host-only.
template <class T>
struct limits {
  static constexpr T infinity = std::numeric_limits<T>::infinity(), lowest = std::numeric_limits<T>::lowest();
  static constexpr T epsilon = std::numeric_limits<T>::epsilon(), least = (std::numeric_limits<T>::min)();
};

/// Weights below this number count as 0: 2^30 times the smallest normal number, 2^-96 in float and 2^-992 in double. So
/// a weight times two more numbers is no subnormal number, unless they are below 2^-15: with one, each instruction of a
/// vector takes some 150 cycles on many processors. Error bounds have a term for it (certify/underflow.hpp).
template <class T>
inline constexpr int least_weight_exponent = std::numeric_limits<T>::min_exponent - 1 + 30;
template <class T>
inline constexpr T least_weight = (std::numeric_limits<T>::min)() * T(1 << 30);

}  // namespace attune::detail
