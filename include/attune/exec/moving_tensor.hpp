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
  tensor<T const> value, along;

  constexpr moving_tensor() = default;
  constexpr moving_tensor(tensor<T const> x) : value(x) {}
  constexpr moving_tensor(tensor<T> x) : value(x) {}
  constexpr moving_tensor(tensor<T const> x, tensor<T const> direction) : value(x), along(direction) {}
  constexpr shape const& extents() const { return value.extents(); }
};

/// Values of the outputs and their derivatives along the direction; empty where the operator has no such output.
template <class T>
struct directional_result {
  gradient_array<T> out, out_along, lse, lse_along, ground_weight, ground_weight_along;
};

}  // namespace attune
