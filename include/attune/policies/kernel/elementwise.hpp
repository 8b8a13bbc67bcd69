// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   s_ij = sum_d f(q_id, k_jd)
#pragma once

#include <array>

#include <attune/policies/kernel/bound.hpp>

namespace attune::kernel {

/// Formula:  s = c sum_d F::pair(q_d, k_d), c = scale, 1 by default
/// Recovers: dot products, distances, ...: any sum over features of a function F of one query feature and one key
///           feature.
/// Requires: inputs .q and .k; F a stateless type with `template <class T> static T pair(T const& q, T const& k)`
///           written in attune::math, branch-free.
/// Axioms:   the same as for F.
/// Numerics: the same as for F; derivatives come from F's own source on dual numbers.
/// Cost:     D evaluations of F per pair: slower than the named contractions, which never fall back to it.
/// Backends: all.
/// Source:   none: the way to add your own kernel.
/// Example:  docs/reference/policies.md#kernels
template <class F>
struct elementwise {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::elementwise<F>;
  parameter scale = 1;  ///< c: multiplies the sum

  constexpr elementwise() = default;
  /// With scale = s.
  constexpr elementwise(parameter s) : scale(s) {}
  static constexpr auto parameters() { return std::array{listed("scale", &elementwise::scale)}; }

  template <class T>
  ATTUNE_HD bound_multiple<T> bind(row<T> const& r) const {
    return {r(scale)};
  }
};

}  // namespace attune::kernel
