// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   s_ij = sum_r a_r cos(w_r n) + b_r sin(w_r n),   n = i + offset - j
#pragma once

#include <array>
#include <tuple>

#include <attune/policies/kernel/bound.hpp>

namespace attune::kernel {

/// Formula:  s = sum_r a_r cos(w_r n) + b_r sin(w_r n), n = i + offset - j: a log-prior as a truncated Fourier series
///           of distance
/// Recovers: no prior at a = b = 0. With key_bias it is GOAT's factorized prior: dot_product{} + fourier_prior{...} +
///           key_bias{}.
/// Requires: tables cosine, sine, frequency (1|B, 1|H, R, 1), all with the same number of rows.
/// Axioms:   shift invariant in positions; periodic if the frequencies are commensurable.
/// Numerics: an angle w n is rounded once, so the error grows like u |w n|.
/// Cost:     4 R flops per pair; no Lq x Lk input.
/// Backends: all.
/// Source:   GOAT, named by Scalar Sort, related work.
/// Example:  docs/reference/operators.md
struct fourier_prior {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::fourier;
  table cosine,   ///< a: (1|B, 1|H, R, 1)
      sine,       ///< b: (1|B, 1|H, R, 1)
      frequency;  ///< w, in radians per position: (1|B, 1|H, R, 1)

  constexpr fourier_prior() = default;
  /// With the factors a and b and the frequencies w.
  constexpr fourier_prior(table a, table b, table w) : cosine(a), sine(b), frequency(w) {}
  static constexpr auto parameters() { return std::tuple<>{}; }
  static constexpr auto tables() {
    return std::array{listed("cosine", &fourier_prior::cosine, table_width::one),
                      listed("sine", &fourier_prior::sine, table_width::one),
                      listed("frequency", &fourier_prior::frequency, table_width::one)};
  }

  template <class T>
  ATTUNE_HD bound_identity<T> bind(row<T> const&) const {
    return {};
  }
};

}  // namespace attune::kernel
