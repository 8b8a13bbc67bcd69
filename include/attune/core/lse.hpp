// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   lse_i = ln z_i,   z_i = all mass of the row: earned, ground and sink
//
// The "LSE" of attention kernels in general may be base e or 2, with or without the scale, the sink or the ground. Here
// it has a type: the natural log of the normalizer (everything the weights are divided by), at the true logits (scale,
// length scale and gate included). `lse_convention` says which of these an operator has.
#pragma once

#include <attune/core/tensor.hpp>

namespace attune {

/// A view of natural-log LSE values, (B, H, Lq, 1). The constructor is explicit, so that nobody passes a base-2 buffer
/// by accident.
template <class T>
struct natural_lse {
  tensor<T> values;  ///< (B, H, Lq, 1): one natural logarithm per row
  constexpr natural_lse() = default;
  /// From a view of natural logarithms. Nothing is converted.
  constexpr explicit natural_lse(tensor<T> view) : values(view) {}
  /// A plain tensor has no log base: this constructor only gives a readable error.
  template <class Other>
  constexpr natural_lse(tensor<Other> const&) {
    static_assert(!std::is_same_v<Other, Other>,
                  "attune: the LSE of attune is a natural logarithm: say so by writing .lse = natural_lse(view)");
  }
};

/// Which factors and masses the lse of an operator contains.
struct lse_convention {
  bool scale = true;          ///< the kernel's scale, always
  bool length_scale = false;  ///< amplification by K
  bool gate = false;          ///< the score gate
  bool constant = false;      ///< a sink's mass
  bool ground = false;        ///< the ground's mass
};

}  // namespace attune
