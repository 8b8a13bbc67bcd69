// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   {Q, dQ}      a tensor and its direction, as jvp() takes them; and the results of jvp()
#pragma once

#include <attune/exec/gradients.hpp>

namespace attune {

/// A tensor and the direction in which it moves; without a direction it is constant.
template <class T>
struct moving_tensor {
  tensor<T const> value,  ///< the tensor
      along;              ///< its direction; absent: none

  constexpr moving_tensor() = default;
  constexpr moving_tensor(tensor<T const> x) : value(x) {}  ///< a constant tensor
  constexpr moving_tensor(tensor<T> x) : value(x) {}        ///< a constant tensor
  /// A tensor and its direction.
  constexpr moving_tensor(tensor<T const> x, tensor<T const> direction) : value(x), along(direction) {}
  constexpr shape const& extents() const { return value.extents(); }  ///< of the tensor
};

/// Values of the outputs and their derivatives along the direction; empty where the operator has no such output.
template <class T>
struct directional_result {
  gradient_array<T> out,    ///< (B, H, Lq, Dv)
      out_along,            ///< its derivative
      lse,                  ///< (B, H, Lq, 1)
      lse_along,            ///< its derivative
      ground_weight,        ///< (B, H, Lq, 1)
      ground_weight_along;  ///< its derivative
};

}  // namespace attune
