// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   s_ij = (<q_i, k_j> + <p^q_i, p^k_j>) / sqrt(2 D)
#pragma once

#include <attune/policies/kernel/bound.hpp>
#include <attune/policies/kernel/compose.hpp>

namespace attune::kernel {

namespace detail {
template <class T>
ATTUNE_HD bound_multiple<T> bind_tupe(row<T> const& r) {
  return {T(r.inverse_sqrt_width * math::sqrt(T(0.5)))};
}
}  // namespace detail

/// Formula:  s = <q, k> / sqrt(2 D): the content half of TUPE
struct tupe_content {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::dot;
  template <class T>
  ATTUNE_HD bound_multiple<T> bind(row<T> const& r) const {
    return detail::bind_tupe(r);
  }
};

/// Formula:  s = <position_q, position_k> / sqrt(2 D): the position half of TUPE
struct tupe_position {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::position_dot;
  template <class T>
  ATTUNE_HD bound_multiple<T> bind(row<T> const& r) const {
    return detail::bind_tupe(r);
  }
};

/// Formula:  s = (<q, k> + <p^q, p^k>) / sqrt(2 D), D the width of q
/// Recovers: a dot product of scale 1 / sqrt(2 D) at p = 0.
/// Requires: inputs .q, .k, .position_q (B, H, Lq, Dp) and .position_k (B, H', Lk, Dp).
/// Axioms:   content and position are compared separately: no cross terms.
/// Numerics: 1/sqrt(2 D) in the executor's scalar.
/// Cost:     2 (D + Dp) flops per pair.
/// Backends: all.
/// Source:   TUPE (Ke et al. 2021), named by Scalar Sort, related work; scale from TUPE itself.
/// Example:  docs/reference/operators.md
constexpr auto tupe() { return tupe_content{} + tupe_position{}; }

}  // namespace attune::kernel
