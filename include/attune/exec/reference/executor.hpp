// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   reference<double>{}      reference<digits50>{}
#pragma once

#include <attune/exec/reference/any_tensor.hpp>

namespace attune {

/// Dense, sequential, textbook evaluation in any scalar T. T is a number with `<`, `==` and the elementary functions,
/// in namespace std or found by ADL (float, double, long double, Boost.Multiprecision without expression templates).
/// Keeps every intermediate: memory O(B H Lq Lk). Deterministic.
template <class T = double>
struct reference {
  using value_type = T;     ///< the scalar that it computes in
  using view = any_tensor;  ///< read-only view of an input: float or double
};

}  // namespace attune
