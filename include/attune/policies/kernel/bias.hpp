// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   s_ij = b_ij      s_ij = b_j      s_ij = log pi_ij
#pragma once

#include <attune/policies/kernel/bound.hpp>

namespace attune::kernel {

/// Formula:  s = b_ij, added to another kernel: dot_product{} + bias{}
/// Recovers: no bias at b = 0.
/// Requires: input .bias (B, H, Lq, Lk).
/// Axioms:   linear in b.
/// Numerics: exact. Entries of invisible keys are never read into a result.
/// Cost:     one read per pair.
/// Backends: all.
/// Source:   any precomputed position bias; T5 (Raffel et al. 2020), named by Scalar Sort, related work.
/// Example:  docs/reference/operators.md
struct bias {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::given_bias;

  template <class T>
  ATTUNE_HD bound_identity<T> bind(row<T> const&) const {
    return {};
  }
};

/// Formula:  s = b_j, one number per key
/// Recovers: no bias at b = 0.
/// Requires: input .key_bias (B, H', Lk, 1).
/// Axioms:   the same for every query.
/// Numerics: exact.
/// Cost:     one read per key.
/// Backends: all.
/// Source:   GOAT's key-only prior, named by Scalar Sort, related work; ALiBi-like "attention bias per token".
/// Example:  docs/reference/operators.md
struct key_bias {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::given_key_bias;

  template <class T>
  ATTUNE_HD bound_identity<T> bind(row<T> const&) const {
    return {};
  }
};

/// Formula:  s = log pi_ij with the prior pi_ij >= 0 as input
/// Recovers: no prior where pi is the same for all keys.
/// Requires: input .bias (B, H, Lq, Lk) holding pi.
/// Axioms:   under softmax weights are proportional to pi_ij e^{s_ij}.
/// Numerics: pi = 0 is a logit of -inf: weight and gradient exactly 0.
/// Cost:     one read and one logarithm per pair.
/// Backends: all.
/// Source:   GOAT (dense prior), named by Scalar Sort, related work.
/// Example:  docs/reference/operators.md
struct log_prior {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::given_bias;

  template <class T>
  struct bound {
    ATTUNE_HD T score(T const& prior, key<T> const&) const { return math::log(prior); }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const&) const {
    return {};
  }
};

}  // namespace attune::kernel
