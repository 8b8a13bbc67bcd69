// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   s_ij = c <R(p_i) q_i, R(p_j) k_j>
#pragma once

#include <array>
#include <cstddef>

#include <attune/core/rotary_angles.hpp>
#include <attune/policies/kernel/bound.hpp>

namespace attune::kernel {

/// Formula:  s = c <R(p_i) q_i, R(p_j) k_j>; R(p) turns pair r of the features by the angle p w_r
/// Recovers: dot_product at w = 0.
/// Requires: inputs .q and .k; at most D/2 pairs; a row of angles for every query and every key.
/// Axioms:   depends on positions through p_i - p_j alone, if the attention factor is 1.
/// Numerics: cosines and sines are read, rounded once. Error of s at most (D + 8) u c times the sum over the pairs
///           (a, b) of (|q_a| + |q_b|)(|k_a| + |k_b|), for an attention factor of 1.
/// Cost:     2 D flops per pair, and 6 R for every query and for every key of a block.
/// Backends: all.
/// Source:   RoFormer (Su et al. 2021).
/// Example:  docs/howto/rotary.md
struct rotary {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::rotary_dot;
  rotary_rows angles;                          ///< the cosines and sines that queries and keys read
  rotary_layout layout = rotary_layout::half;  ///< which features form a pair
  rotary_keys keys = rotary_keys::plain;       ///< whether .k stores keys that are turned already
  parameter scale = {};                        ///< c; 1 / sqrt(D) if it is not set

  /// Bytes of members that are no parameters.
  static constexpr std::size_t constants = sizeof(rotary_rows) + sizeof(rotary_layout) + sizeof(rotary_keys);
  static constexpr auto parameters() { return std::array{listed("scale", &rotary::scale)}; }

  template <class T>
  ATTUNE_HD bound_multiple<T> bind(row<T> const& r) const {
    return {r(scale, r.inverse_sqrt_width)};
  }
};

}  // namespace attune::kernel
