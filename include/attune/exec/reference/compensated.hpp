// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   sum + lost:  the rounding error of every addition, added back at the end
#pragma once

#include <attune/core/math.hpp>

namespace attune::detail {

/// A sum whose error does not grow with the number of terms (Neumaier; two-sum is exact whichever operand is larger).
template <class T>
class compensated {
 public:
  void add(T const& x) {
    T const next = math::as_computed(T(sum_ + x)), part = math::as_computed(T(next - sum_));
    lost_ = lost_ + ((sum_ - math::as_computed(T(next - part))) + (x - part));
    sum_ = next;
  }
  /// Infinite and NaN sums are returned as they are: their error terms mean nothing.
  T value() const { return math::select(math::zero_if_finite(sum_) == T(0), T(sum_ + lost_), sum_); }

 private:
  T sum_ = T(0), lost_ = T(0);
};

}  // namespace attune::detail
