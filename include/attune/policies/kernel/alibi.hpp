// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   s_ij = -slope |i + offset - j|
#pragma once

#include <array>

#include <attune/policies/concepts.hpp>

namespace attune::kernel {

/// Formula:  s = -m |i + offset - j|, added to another kernel: dot_product{} + alibi{m}
/// Recovers: no position bias at m = 0.
/// Requires: positions only; no input.
/// Axioms:   shift invariant in positions; for m > 0 the nearest key scores highest.
/// Numerics: positions are exact in T (float: below 2^24); one rounding.
/// Cost:     2 flops per pair.
/// Backends: all.
/// Source:   Press et al. 2022, "Train Short, Test Long"; named as a position kernel by Scalar Sort, related work.
/// Example:  docs/reference/policies.md
struct alibi {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::none;
  parameter slope = 0;  ///< m: the score falls by m with every position of distance

  constexpr alibi() = default;
  /// With slope = m.
  constexpr alibi(parameter m) : slope(m) {}
  static constexpr auto parameters() { return std::array{listed("slope", &alibi::slope)}; }

  template <class T>
  struct bound {
    T slope,       ///< m of the row
        position;  ///< position of the query among the keys
    ATTUNE_HD T score(key<T> const& k) const { return -slope * math::abs(T(position - k.position)); }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r(slope), r.position};
  }
};

}  // namespace attune::kernel
