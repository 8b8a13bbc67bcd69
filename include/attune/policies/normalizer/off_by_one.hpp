// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   w_j = e^{a_j} / (1 + sum_j e^{a_j})
#pragma once

#include <attune/policies/normalizer/sink.hpp>

namespace attune::normalizer {

/// Formula:  w = e^a / z, w0 = 1 / z, z = 1 + sum e^a, out = sum w v (+ w0 v0 with a value)
/// Recovers: softmax as all logits grow.
/// Requires: with a value, input .v0 (1|B, 1|H, 1|Lq, Dv).
/// Axioms:   sum w + w0 = 1; not shift invariant.
/// Numerics: as a sink with logit 0. No visible key or all logits -inf: w0 = 1, lse = 0.
/// Cost:     as softmax.
/// Backends: all.
/// Source:   Affine-Scaled Attention, equation 2 ("softmax-off-by-one", Miller 2023).
/// Example:  docs/reference/policies.md
template <sink_value Value>
struct basic_off_by_one {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits = basic_sink<Value>::traits;
  static constexpr bool exponential = true;  ///< earned(a, m) is e^(a - m)

  template <class T>
  ATTUNE_HD detail::bound_sink<T> bind(row<T> const& r) const {
    return {r.logit(0.0)};
  }
};

/// Off-by-one without a value: the remaining mass w0 weights nothing.
using off_by_one = basic_off_by_one<sink_value::nothing>;
/// Off-by-one whose remaining mass w0 weights v0.
using valued_off_by_one = basic_off_by_one<sink_value::v0>;

}  // namespace attune::normalizer
