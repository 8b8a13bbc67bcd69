// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   s' = cap tanh(s / cap)
#pragma once

#include <array>

#include <attune/policies/concepts.hpp>

namespace attune::kernel {

/// Formula:  s' = c tanh(s / c), applied to a whole kernel: (dot_product{} + alibi{m}) | softcap{30}
/// Recovers: the uncapped kernel as c grows.
/// Requires: cap > 0.
/// Axioms:   odd, increasing, |s'| <= c.
/// Numerics: tanh by expm1, so that relative accuracy holds near 0. A score of -inf becomes -c, like every very
///           negative score: the cap comes before everything that can switch a key off. To hide keys, use a mask.
/// Cost:     one expm1 and one division per pair.
/// Backends: all.
/// Source:   Gemma 2 (2024); not in the five papers.
/// Example:  docs/reference/policies.md
struct softcap {
  static constexpr auto role = policy_role::score_map;
  parameter cap = 30;  ///< c: scores stay in [-c, c], > 0

  constexpr softcap() = default;
  /// With cap = c.
  constexpr softcap(parameter c) : cap(c) {}
  static constexpr auto parameters() { return std::array{listed("cap", &softcap::cap, domain::positive)}; }

  template <class T>
  struct bound {
    T cap;  ///< c of the row
    /// c tanh(s / c).
    ATTUNE_HD T map(T const& s) const { return cap * math::tanh(attune::detail::quotient(s, cap)); }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r(cap)};
  }
};

}  // namespace attune::kernel
