// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   s_ij = c (<q_i + u, k_j> + <q_i + w, r_{i + offset - j}>)
#pragma once

#include <array>

#include <attune/policies/kernel/bound.hpp>
#include <attune/policies/kernel/compose.hpp>

namespace attune::kernel {

/// Formula:  s = c <q + u, k>: terms (a) and (c) of Transformer-XL
struct xl_content {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::biased_dot;
  table bias;       ///< u: (1|B, 1|H, 1, D)
  parameter scale;  ///< c; 1 / sqrt(D) if it is not set
  static constexpr auto parameters() { return std::array{listed("scale", &xl_content::scale)}; }
  static constexpr auto tables() { return std::array{listed("bias", &xl_content::bias, table_width::query_row)}; }
  template <class T>
  ATTUNE_HD bound_multiple<T> bind(row<T> const& r) const {
    return {r(scale, r.inverse_sqrt_width)};
  }
};

/// Formula:  s = c <q + w, r_{i + offset - j}>: terms (b) and (d) of Transformer-XL
struct xl_position {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::relative_dot;
  table bias,       ///< w: (1|B, 1|H, 1, D)
      relative;     ///< r: (1|B, 1|H, R, D); row floor(R / 2) belongs to distance 0
  parameter scale;  ///< c; 1 / sqrt(D) if it is not set
  static constexpr auto parameters() { return std::array{listed("scale", &xl_position::scale)}; }
  static constexpr auto tables() {
    return std::array{listed("bias", &xl_position::bias, table_width::query_row),
                      listed("relative", &xl_position::relative, table_width::query)};
  }
  template <class T>
  ATTUNE_HD bound_multiple<T> bind(row<T> const& r) const {
    return {r(scale, r.inverse_sqrt_width)};
  }
};

/// Formula:  s = c (<q + u, k> + <q + w, r_n>), n = i + offset - j: the four terms of Transformer-XL
/// Recovers: the scaled dot product at u = r = 0.
/// Requires: inputs .q, .k; tables u, w (1|B, 1|H, 1, D) and r (1|B, 1|H, R, D). Row floor(R / 2) of r belongs to
///           distance 0.
/// Axioms:   the position terms are shift invariant.
/// Numerics: the biases are added to the query before the products, as in the printed formula.
/// Cost:     4 D flops per pair.
/// Backends: all.
/// Source:   Transformer-XL (Dai et al. 2019), named by Scalar Sort, related work.
/// Example:  docs/reference/operators.md
constexpr auto transformer_xl(table u, table w, table r, parameter scale = {}) {
  return xl_content{u, scale} + xl_position{w, r, scale};
}

}  // namespace attune::kernel
