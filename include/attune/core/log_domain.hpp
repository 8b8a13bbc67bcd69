// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   log_sigmoid(x) = -softplus(-x),   log1m_exp(x) = log(1 - e^-|x|),   softplus_inverse(y) = log(e^y - 1)
//
// Logarithms of quantities in (0, 1), with full relative accuracy at both ends.
#pragma once

#include <attune/core/math.hpp>

namespace attune::math {

/// log sigma(x)
template <class T>
ATTUNE_HD T log_sigmoid(T const& x) {
  return -softplus(T(-x));
}

/// log(1 - e^-|x|): -inf at 0.
template <class T>
ATTUNE_HD T log1m_exp(T const& x) {
  T const a = abs(x);  // switching at log 2 keeps both forms away from cancellation
  return select(a < T(0.693147180559945309), log(T(-expm1(T(-a)))), log1p(T(-attune::detail::exp_of_negative(T(-a)))));
}

/// The x with softplus(x) = y: -inf at y = 0, NaN for y < 0.
template <class T>
ATTUNE_HD T softplus_inverse(T const& y) {
  T const nan = infinity<T>() - infinity<T>();
  return select(y < T(0), nan, T(y + log1m_exp(y)));
}

}  // namespace attune::math
