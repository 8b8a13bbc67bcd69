// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   s_ij = scores_ij, an input
#pragma once

#include <attune/policies/kernel/bound.hpp>

namespace attune::kernel {

/// Formula:  s = scores_ij
/// Recovers: any attention whose scores the caller has computed.
/// Requires: input .scores (B, H, Lq, Lk); then .q and .k are superfluous.
/// Axioms:   the identity.
/// Numerics: exact. A score of -inf gives its key weight exactly 0, but the key still counts in K. To hide keys, use
///           masks. A score of an invisible key is never read into a result.
/// Cost:     one read per pair; the only kernel that needs Lq x Lk memory, the caller's.
/// Backends: all.
/// Source:   none: used by tests and analysis.
/// Example:  docs/reference/policies.md
struct given_scores {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::given_scores;

  template <class T>
  ATTUNE_HD bound_identity<T> bind(row<T> const&) const {
    return {};
  }
};

}  // namespace attune::kernel
