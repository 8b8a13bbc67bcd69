// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   score = sin(r s) + cos(s) + acos(7/8 sin s) + erf(s) + (1 + s^2)^r + f (1 - f),  s = <q, k> / sqrt(D),
//       f = s - floor(s)
//
// A kernel out of the functions that only users' policies call.
#pragma once

#include <array>

#include <attune/policies.hpp>

namespace attune::test {

struct every_function {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::dot;
  parameter rate = 0.75;
  static constexpr auto parameters() { return std::array{listed("rate", &every_function::rate)}; }

  template <class T>
  struct bound {
    T rate, scale;
    ATTUNE_HD T score(T const& product, key<T> const&) const {
      T const one(1), s = scale * product, f = s - math::floor(s);
      T const angles = math::sin(T(rate * s)) + math::cos(s) + math::acos(T(T(0.875) * math::sin(s)));
      return angles + math::erf(s) + math::pow(T(one + s * s), rate) + f * (one - f);
    }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r(rate), r.inverse_sqrt_width};
  }
};

}  // namespace attune::test
