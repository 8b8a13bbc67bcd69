// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   w_j = e^{a_j} / z,   w0 = e^t / z,   z = e^t + sum_j e^{a_j}
#pragma once

#include <array>

#include <attune/policies/concepts.hpp>

namespace attune::normalizer {

namespace detail {

/// The mass e^t that belongs to no key, relative to the reference m.
template <class T>
struct bound_sink {
  T level;
  ATTUNE_HD T earned(T const& a, T const& m) const { return math::exp_nonpositive(T(a - m)); }
  ATTUNE_HD T constant(T const& m) const {
    return math::select(level == math::infinity<T>(), T(1), math::exp_nonpositive(T(level - m)));
  }
  ATTUNE_HD T lowest_reference() const { return level; }
};

}  // namespace detail

/// Whether the mass of a sink weights a value (the input .v0) or nothing.
enum class sink_value { nothing, v0 };

/// Formula:  w = e^a / z, w0 = e^t / z, z = e^t + sum e^a, out = sum w v (+ w0 v0 with a value)
/// Recovers: softmax as t -> -inf (t = -inf included); off-by-one at t = 0.
/// Requires: with a value, input .v0 (1|B, 1|H, 1|Lq, Dv).
/// Axioms:   sum w + w0 = 1; not shift invariant.
/// Numerics: the sink is part of the running reference, so no t overflows. No visible key or all logits -inf: w0 = 1,
///           lse = t. t = +inf: w0 = 1, w = 0.
/// Cost:     as softmax; the sink's mass enters once per row, never once per split.
/// Backends: all.
/// Source:   Affine-Scaled Attention, equation 3 (learned sink); with a value: the contrast to Principled Attention.
/// Example:  docs/reference/policies.md
template <sink_value Value>
struct basic_sink {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.constant_mass = true, .ground_value = Value == sink_value::v0};
  static constexpr bool exponential = true;  ///< earned(a, m) is e^(a - m)
  parameter logit = 0;                       ///< t: the logit of the sink; -inf: softmax

  constexpr basic_sink() = default;
  /// With logit = t.
  constexpr basic_sink(parameter t) : logit(t) {}
  static constexpr auto parameters() { return std::array{listed("logit", &basic_sink::logit, domain::extended)}; }

  template <class T>
  ATTUNE_HD detail::bound_sink<T> bind(row<T> const& r) const {
    return {r.logit(logit)};
  }
};

/// A learned sink without a value.
using sink = basic_sink<sink_value::nothing>;
/// A learned sink with the value v0.
using valued_sink = basic_sink<sink_value::v0>;

}  // namespace attune::normalizer
