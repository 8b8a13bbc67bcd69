// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   softplus(x) = log(1 + e^x),  sigmoid(x) = 1 / (1 + e^-x),  tanh(x),  log(1 + k x) / k
//
// Functions that are made of others, for any scalar. core/math.hpp includes this header.
#pragma once

#include <attune/core/math.hpp>

namespace attune {

namespace detail {

/// a / b, correctly rounded also where `/` is not: for ARM batches.
template <class T>
ATTUNE_HD ATTUNE_INLINE T quotient(T const& a, T const& b) {
  if constexpr (requires { scalar<T>::quotient(a, b); })
    return scalar<T>::quotient(a, b);
  else
    return T(a / b);
}

/// exp(x) for x <= 0, or NaN, down to the smallest normal number: no weight, so nothing counts as 0 before.
template <class T>
ATTUNE_HD ATTUNE_INLINE T exp_of_negative(T const& x) {
  if constexpr (requires { scalar<T>::exp_of_negative(x); })
    return scalar<T>::exp_of_negative(x);
  else
    return scalar<T>::exp(x);
}
template <class T>
ATTUNE_HD inline T softplus(T const& x) {
  return math::larger(x, T(0)) + scalar<T>::log1p_unit(detail::exp_of_negative(T(-math::abs(x))));
}
template <class T>
ATTUNE_HD inline T sigmoid(T const& x) {
  T const e = detail::exp_of_negative(T(-math::abs(x)));
  return detail::quotient(T(math::select(x < T(0), e, T(1))), T(T(1) + e));
}
template <class T>
ATTUNE_HD inline T tanh(T const& x) {
  T const e = math::expm1(T(T(-2) * math::abs(x)));
  T const t = detail::quotient(T(-e), T(T(2) + e));
  return math::select(x < T(0), T(-t), t);
}
template <class T>
ATTUNE_HD inline T log1p_rate(T const& k, T const& x) {
  T const one(1), zero(0);
  return math::select(k == zero, x, detail::quotient(math::log1p(T(k * x)), T(math::select(k == zero, one, k))));
}

}  // namespace detail
}  // namespace attune
