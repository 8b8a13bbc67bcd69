// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   o'_i = o_i sigma(x_i)      v'_j = v_j sigma(x_j)
#pragma once

#include <attune/policies/concepts.hpp>

namespace attune::gate {

namespace detail {
template <class T>
struct bound_sigmoid {
  ATTUNE_HD T factor(T const& x) const { return math::sigmoid(x); }
};
}  // namespace detail

/// Formula:  o' = o sigma(x), after the value sum and the ground value
/// Recovers: no gate as x -> +inf.
/// Requires: input .output_gate (B, H, Lq, Dv): elementwise; (B, H, Lq, 1): headwise.
/// Axioms:   scales every output feature by a number in [0, 1]; weights, lse and w0 do not change.
/// Numerics: sigma with full relative accuracy on both sides.
/// Cost:     one exponential per output element or row.
/// Backends: all.
/// Source:   Affine-Scaled Attention, equations 4 and 5 (gated attention); Scalar Sort, section 7.
/// Example:  docs/reference/operators.md
struct sigmoid_output {
  static constexpr auto role = policy_role::output_gate;
  template <class T>
  ATTUNE_HD detail::bound_sigmoid<T> bind(row<T> const&) const {
    return {};
  }
};

/// Formula:  v' = v sigma(x), before the value sum
/// Recovers: no gate as x -> +inf.
/// Requires: input .value_gate (B, Hv, Lk, Dv).
/// Axioms:   the weights do not change; the ground value is not gated.
/// Numerics: sigma with full relative accuracy on both sides.
/// Cost:     one exponential per value element and block of queries.
/// Backends: all.
/// Source:   Gated Sparse Attention, named by Scalar Sort, section 7.
/// Example:  docs/reference/operators.md
struct sigmoid_value {
  static constexpr auto role = policy_role::value_gate;
  template <class T>
  ATTUNE_HD detail::bound_sigmoid<T> bind(row<T> const&) const {
    return {};
  }
};

}  // namespace attune::gate
