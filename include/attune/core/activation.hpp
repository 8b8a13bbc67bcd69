// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   y = activate(activation::sigmoid, x)
//
// The maps that turn a learned pre-activation into a parameter.
#pragma once

#include <attune/core/math.hpp>

namespace attune {

/// A map from a pre-activation x to the value of a parameter.
enum class activation {
  identity,  ///< x
  sigmoid,   ///< 1 / (1 + e^-x)
  softplus,  ///< log(1 + e^x)
  /// clamp(x / 10 + 1/2, 0, 1); derivative 1/10 on |x| < 5, else 0 (Affine-Scaled Attention, section 3)
  linear_clipping,
};

/// The activation of x, in any scalar; branch-free.
template <class T>
ATTUNE_HD T activate(activation f, T const& x) {
  switch (f) {
    case activation::sigmoid:
      return math::sigmoid(x);
    case activation::softplus:
      return math::softplus(x);
    case activation::linear_clipping:
      return math::select(x <= T(-5), T(0), math::select(x >= T(5), T(1), T(x / T(10) + T(0.5))));
    case activation::identity:
      break;
  }
  return x;
}

}  // namespace attune
