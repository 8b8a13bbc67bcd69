// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   f_ij = 0 where u_ij < rate, else 1 / (1 - rate)        out_i = sum_j f_ij w_ij v_j
#pragma once

#include <cstdint>
#include <tuple>

#include <attune/policies/concepts.hpp>

namespace attune::gate {

/// Formula:  f = 0 where u < rate, else 1 / (1 - rate), with u = the random number of (seed, batch, head, query
///           position, key position) in [0, 1); f multiplies what a key adds to the value sum
/// Recovers: no gate at rate 0, with the same values.
/// Requires: nothing. rate in [0, 1). Give each step and each layer its own seed.
/// Axioms:   the expectation of the output over seeds is the output without dropout, up to a relative error of 2^-24 /
///           (1 - rate): rates are rounded up to a multiple of 2^-24 for the choice of keys. Masses, lse and ground
///           weight do not change.
/// Numerics: a dropped key adds exactly 0, unless its value is NaN or infinite.
/// Cost:     10 rounds of Philox for four pairs; no memory. The backward pass draws the same numbers again.
/// Backends: all.
/// Source:   Srivastava et al., "Dropout", 2014; on attention weights: Vaswani et al., "Attention is all you need".
///           The numbers: core/philox.hpp.
/// Example:  docs/howto/dropout.md
struct dropout {
  static constexpr auto role = policy_role::weight_gate;
  using contraction = contraction::uniform;
  double rate = 0.1;       ///< the share of keys that are dropped, in [0, 1)
  std::uint64_t seed = 0;  ///< chooses the random numbers

  static constexpr auto parameters() { return std::tuple<>{}; }
  /// Throws attune::error unless the rate is in [0, 1).
  void(check)(char const* function) const {
    if (!(rate >= 0 && rate < 1))
      throw error(function, "rate of gate::dropout", attune::detail::text("the value ", rate), "a number in [0, 1)");
  }

  template <class T>
  struct bound {
    T threshold,  ///< keys with a smaller number are dropped
        scale;    ///< factor of the others
    /// 0 or 1 / (1 - rate).
    ATTUNE_HD ATTUNE_INLINE T factor(T const& u, key<T> const&) const {
      return math::select(u < threshold, T(0), scale);
    }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const&) const {
    return {lift<T>::constant(exact_threshold()), lift<T>::constant(1 / (1 - rate))};
  }

 private:
  /// The smallest multiple of 2^-24 that is not below the rate. Random numbers are such multiples, so the choice of
  /// keys is the same in every scalar.
  ATTUNE_HD constexpr double exact_threshold() const {
    double const steps = rate * 0x1p24;
    double const whole = double(std::int64_t(steps));
    return (whole < steps ? whole + 1 : whole) * 0x1p-24;
  }
};

}  // namespace attune::gate
