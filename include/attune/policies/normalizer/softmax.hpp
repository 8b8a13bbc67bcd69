// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   w_j = e^{a_j} / z,   z = sum_j e^{a_j}
#pragma once

#include <attune/policies/concepts.hpp>

namespace attune::normalizer {

/// Formula:  w = e^a / z, z = sum e^a
/// Recovers: itself; everything else recovers it.
/// Recovers: itself; the other normalizers recover it.
/// Axioms:   shift invariant; sum w = 1; increasing in a.
/// Numerics: masses are relative to the row's maximum. All logits -inf: as no visible key (out = 0, lse = -inf). A
///           logit of +inf or NaN makes the row NaN.
/// Cost:     one exponential per pair. State: (m, z) and the value sum.
/// Backends: all.
/// Source:   all five papers.
/// Example:  docs/reference/policies.md
struct softmax {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{};
  static constexpr bool exponential = true;  ///< earned(a, m) is e^(a - m)

  template <class T>
  struct bound {
    ATTUNE_HD T earned(T const& a, T const& m) const { return math::exp_nonpositive(T(a - m)); }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const&) const {
    return {};
  }
};

}  // namespace attune::normalizer
