// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Normalizers whose factor depends on the sum of a row's masses.
#pragma once

#include <tuple>

#include <attune/policies.hpp>

namespace attune::test {

// [snippet: factor_of_sums]
/// w = a / max(|sum a|, 1): RetNet's divisor, which never divides by less than 1.
struct retention_sum {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{
      .divided_by = divisor::one, .reference = mass_reference::none, .weight_factor = true};
  template <class T>
  struct bound {
    ATTUNE_HD T earned(T const& a, T const&) const { return a; }
    ATTUNE_HD T weight_factor(T const& earned, T const&) const { return T(1) / math::larger(math::abs(earned), T(1)); }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const&) const {
    return {};
  }
};
// [/snippet]

/// w = e / (E + c) (1 + rate E / K) + E / (1 + K)^2: every trait of a mass that is not relative.
struct crowded_sum {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.reference = mass_reference::none,
                                            .constant_mass = true,
                                            .ground_value = true,
                                            .weight_factor = true,
                                            .uniform_share = true};
  parameter rate = 0.5, sink = 0.75;
  static constexpr auto parameters() {
    return std::tuple{listed("rate", &crowded_sum::rate), listed("sink", &crowded_sum::sink)};
  }
  template <class T>
  struct bound {
    T rate, sink;
    ATTUNE_HD T earned(T const& a, T const&) const { return math::softplus(a); }
    ATTUNE_HD T constant(T const&) const { return sink; }
    ATTUNE_HD T weight_factor(T const& earned, T const& visible) const { return T(1) + rate * earned / visible; }
    ATTUNE_HD T uniform_share(T const& earned, T const& visible) const {
      return earned / ((T(1) + visible) * (T(1) + visible));
    }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r(rate), r(sink)};
  }
};

}  // namespace attune::test
