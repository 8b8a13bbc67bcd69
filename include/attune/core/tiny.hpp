// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   x -> 0 where |x| < least weight
//
// Numbers so small that they count as 0, for executors. A weight gets there by its normalizer, by a factor or by a
// higher reference. On batches nothing here makes a subnormal number on the way.
#pragma once

#include <attune/core/math.hpp>

namespace attune::detail {

/// x, or 0 where |x| is so small that a weight counts as 0: below 2^-96 in float, 2^-992 in double.
template <class T>
ATTUNE_HD ATTUNE_INLINE T zero_if_tiny(T const& x) {
  if constexpr (requires { scalar<T>::zero_if_tiny(x); })
    return scalar<T>::zero_if_tiny(x);
  else
    return x;
}

/// x, or 0 where |x y| is tiny.
template <class T>
ATTUNE_HD ATTUNE_INLINE T zero_if_tiny(T const& x, T const& y) {
  if constexpr (requires { scalar<T>::zero_if_tiny(x, y); })
    return scalar<T>::zero_if_tiny(x, y);
  else
    return math::select(detail::zero_if_tiny(T(x * y)) == T(0), T(0), x);
}
/// A weight times a factor: 0 where that is tiny.
template <class T>
ATTUNE_HD ATTUNE_INLINE T scaled_weight(T const& weight, T const& factor) {
  return detail::zero_if_tiny(weight, factor) * factor;
}

/// x, or 0 where |x| is below 2^Room times the smallest normal number.
template <int Room = 0, class T>
ATTUNE_HD ATTUNE_INLINE T zero_if_subnormal(T const& x) {
  return math::select(math::abs(x) < scalar<T>::least() * T(1 << Room), T(0), x);
}

/// Scales sums of a row by a factor that is 0 or at least the least weight. A sum that would become subnormal becomes
/// 0. The factor 1 changes nothing.
template <class Batch>
class row_scale {
 public:
  row_scale() = default;
  ATTUNE_INLINE explicit row_scale(Batch const& factor)
      : factor_(factor), lowest_(math::select(factor == Batch(1), Batch(0), Batch(scalar<Batch>::least() / factor))) {}
  friend ATTUNE_INLINE Batch operator*(Batch const& sum, row_scale const& by) {
    return math::select(math::abs(sum) < by.lowest_, Batch(0), sum) * by.factor_;
  }

 private:
  Batch factor_, lowest_;  ///< lowest: infinite where the factor is 0
};

}  // namespace attune::detail
