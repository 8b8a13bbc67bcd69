// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   a = (scale log K + bias) s
#pragma once

#include <array>

#include <attune/policies/concepts.hpp>

namespace attune::length_scale {

/// Formula:  a = (s_max log K + b) s, K the number of visible keys of the row
/// Recovers: plain scores at scale = 0, bias = 1.
/// Requires: finite scale and bias.
/// Axioms:   linear in s. One visible key without bias: factor 0, weight 1.
/// Numerics: a score of -inf stays -inf at factor 0. One rounding in addition to the roundings of the factor.
/// Cost:     1 flop per pair.
/// Backends: all.
/// Source:   Scalable-Softmax (Nakanishi 2025), as named by "Limits of normalization" section 4 and Scalar Sort.
/// Example:  docs/reference/policies.md
struct ssmax {
  static constexpr auto role = policy_role::length_scale;
  static constexpr length_scale_traits traits{};
  parameter scale = 1,  ///< s_max: the factor of log K
      bias = 0;         ///< b: added to the factor of the scores

  static constexpr auto parameters() {
    return std::array{listed("scale", &ssmax::scale), listed("bias", &ssmax::bias)};
  }

  template <class T>
  struct bound {
    T factor;  ///< s_max log K + b
    ATTUNE_HD T scale(T const& s) const { return math::scale_keeping_off(factor, s); }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {T(r(scale) * r.log_visible + r(bias))};
  }
};

}  // namespace attune::length_scale
