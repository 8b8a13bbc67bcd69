// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   g = vjp(reference<T>{}, op, {.q = Q, .k = K, .v = V}, {.out = dO})
#pragma once

#include <attune/exec/reference/composite.hpp>

namespace attune {

/// Gradients of sum <d.out, out> + <d.lse, lse> + <d.ground_weight, w0> by every input, parameter and table, in any
/// scalar. Of a fold also by every coefficient ("fold.0", ...). Conventions at kinks and ties, and for degenerate rows:
/// docs/reference/contracts.md.
/// Errors:     attune::error names the argument, the value and the expectation.
/// Complexity: O(B H Lq Lk (D + Dv + parameters)) operations of T; memory for the gradients and one row.
template <class T, class Op>
dense_gradients<T> vjp(reference<T>, Op const& op, inputs<Op, any_tensor> const& in,
                       cotangents<Op, any_tensor> const& d) {
  if constexpr (Fold<Op>)
    return detail::dense_vjp_of_fold<T>("vjp", op, in, d, detail::coefficients_in<T, Op>{op}, detail::still_numbers{});
  else if constexpr (detail::is_mixture<Op>)
    return detail::dense_vjp_of_mixture<T>(op, in, d);
  else
    return detail::dense_vjp<T>(op, in, detail::checked_inputs("vjp", op, in), d);
}

}  // namespace attune
