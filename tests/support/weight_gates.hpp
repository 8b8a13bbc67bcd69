// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Weight gates of a user: a decay after the normalizer with a learned rate, and a gate that reads a contraction.
#pragma once

#include <array>

#include <attune/policies.hpp>

namespace attune::test {

/// gamma^(i + offset - j) with gamma = e^-rate.
struct weight_decay {
  static constexpr auto role = policy_role::weight_gate;
  using contraction = contraction::none;
  parameter rate = 0.1;
  static constexpr auto parameters() { return std::array{listed("rate", &weight_decay::rate)}; }
  template <class T>
  struct bound {
    T rate, position;
    ATTUNE_HD T factor(key<T> const& k) const { return math::exp(T(-rate * (position - k.position))); }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r(rate), r.position};
  }
};

/// sigma(strength u) with u the value of the contraction C.
template <class C>
struct basic_weight_sigmoid {
  static constexpr auto role = policy_role::weight_gate;
  using contraction = C;
  parameter strength = 0.7;
  static constexpr auto parameters() { return std::array{listed("strength", &basic_weight_sigmoid::strength)}; }
  template <class T>
  struct bound {
    T strength;
    ATTUNE_HD T factor(T const& u, key<T> const&) const { return math::sigmoid(T(strength * u)); }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r(strength)};
  }
};
using weight_sigmoid = basic_weight_sigmoid<contraction::gate_dot>;

}  // namespace attune::test
