// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   a = s (0.1 log(extension) + 1)^2
#pragma once

#include <array>

#include <attune/policies/concepts.hpp>

namespace attune::length_scale {

/// Formula:  a = s t^2, t = 0.1 log(extension) + 1 for extension > 1, else t = 1; extension = context length / training
///           length
/// Recovers: plain scores at extension <= 1.
/// Requires: extension > 0.
/// Axioms:   linear in s; does not depend on K: the only length scale that is set by hand.
/// Numerics: a score of -inf stays -inf.
/// Cost:     1 flop per pair.
/// Backends: all.
/// Source:   YaRN (Peng et al. 2024), named by Scalar Sort, related work.
/// Example:  docs/reference/operators.md
struct yarn {
  static constexpr auto role = policy_role::length_scale;
  static constexpr length_scale_traits traits{};
  parameter extension = 1;  ///< context length / training length, > 0

  constexpr yarn() = default;
  /// With extension = e.
  constexpr yarn(parameter e) : extension(e) {}
  static constexpr auto parameters() { return std::array{listed("extension", &yarn::extension, domain::positive)}; }

  template <class T>
  struct bound {
    T factor;  ///< t^2
    ATTUNE_HD T scale(T const& s) const { return math::scale_keeping_off(factor, s); }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    T const t = math::log(math::larger(T(1), r(extension))) / T(10) + T(1);
    return {T(t * t)};
  }
};

}  // namespace attune::length_scale
