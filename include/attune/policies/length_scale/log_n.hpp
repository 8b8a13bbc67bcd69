// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   a = s log K / log n0
#pragma once

#include <array>

#include <attune/policies/concepts.hpp>

namespace attune::length_scale {

/// Formula:  a = s log K / log(training_length)
/// Recovers: plain scores on rows with K = training_length.
/// Requires: training_length > 1.
/// Axioms:   linear in s.
/// Numerics: a score of -inf stays -inf at K = 1.
/// Cost:     1 flop per pair.
/// Backends: all.
/// Source:   the log-n trick (Su 2021), mentioned by Scalar Sort, related work.
/// Example:  docs/reference/policies.md
struct log_n {
  static constexpr auto role = policy_role::length_scale;
  static constexpr length_scale_traits traits{};
  parameter training_length = 512;  ///< n0, in keys, > 1: rows with n0 visible keys are not scaled

  constexpr log_n() = default;
  /// With training_length = length.
  constexpr log_n(parameter length) : training_length(length) {}
  static constexpr auto parameters() {
    return std::array{listed("training_length", &log_n::training_length, domain::above_one)};
  }

  template <class T>
  struct bound {
    T factor;  ///< log K / log n0
    ATTUNE_HD T scale(T const& s) const { return math::scale_keeping_off(factor, s); }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {T(r.log_visible / math::log(r(training_length)))};
  }
};

}  // namespace attune::length_scale
