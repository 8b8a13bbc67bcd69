// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   saturated_softplus(beta) = min(softplus(beta), 2^96)
//
// A gate or a length scale uses this function to turn a parameter of any sign into a strength. It saturates, so that
// products with numbers of moderate size stay finite in single precision and infinity minus infinity cannot arise.
#pragma once

#include <attune/core/math.hpp>

namespace attune {

/// min(softplus(parameter), 2^96), branch-free: 0 at -inf.
template <class T>
ATTUNE_HD ATTUNE_INLINE T saturated_softplus(T const& parameter) {
  return math::smaller(math::softplus(parameter), T(0x1p96f));
}

}  // namespace attune
