// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   lse_i = ln z_i,   z_i = all mass of the row, earned, ground and sink
//
// "The LSE" of a kernel is a number without units: base e or 2, with or without the scale, the sink, the ground. Here
// it has a type: natural log of everything the weights were divided by, at the true logits (scale, length scale and
// gate included). `lse_convention` says which of these an operator has.
#pragma once

#include <attune/core/tensor.hpp>

namespace attune {

/// A view of natural-log LSE values, (B, H, Lq, 1). Made explicitly, so that a base-2 buffer is never passed by
/// accident.
template <class T>
struct natural_lse {
  tensor<T> values;
  constexpr natural_lse() = default;
  constexpr explicit natural_lse(tensor<T> view) : values(view) {}
  /// A plain tensor has no unit: this only says so in words.
  template <class Other>
  constexpr natural_lse(tensor<Other> const&) {
    static_assert(!std::is_same_v<Other, Other>,
                  "attune: the LSE of attune is a natural logarithm: say so by writing .lse = natural_lse(view)");
  }
};

/// What an operator's LSE contains.
struct lse_convention {
  bool scale = true;          ///< the kernel's scale, always
  bool length_scale = false;  ///< amplification by K
  bool gate = false;          ///< the score gate
  bool constant = false;      ///< a sink's mass
  bool ground = false;        ///< the ground's mass
};

}  // namespace attune
