// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   s_ij = c x_ij      s_ij = x_ij,      x the contraction of the pair
//
// Most kernels after they are bound to a row: they differ only in their contraction and in the choice of c.
#pragma once

#include <attune/policies/concepts.hpp>

namespace attune::kernel {

/// A kernel bound to a row: its contraction times c.
template <class T>
struct bound_multiple {
  static constexpr bool linear = true;  ///< the score is a multiple of the only contraction
  T c;                                  ///< the factor of the row
  ATTUNE_HD T score(T const& x, key<T> const&) const { return c * x; }
};

/// A kernel bound to a row: its contraction itself.
template <class T>
struct bound_identity {
  static constexpr bool linear = true;  ///< the score is a multiple of the only contraction
  ATTUNE_HD T score(T const& x, key<T> const&) const { return x; }
};

}  // namespace attune::kernel
