// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   state = (m, earned, ground, acc):  earned = sum e(a_j) e^-m,  ground = sum g(a_j) e^-m,  acc = sum e(a_j) e^-m v_j
//
// What streaming keeps of a row: a commutative monoid under `merge`, up to rounding, with the empty state as unit. Split-KV
// decode, threads, ring attention and an MPI reduction are all this merge. A sink's constant mass is not in the state: it
// enters once, in `finish`.
#pragma once

#include <limits>
#include <vector>

#include <attune/policies/concepts.hpp>

namespace attune {

/// Low enough that every meaningful logit lies above it, high enough that differences stay finite: the reference of a row
/// that has seen nothing. Logits below it count as -inf.
template <class T>
ATTUNE_HD T unseen_reference() {
  if constexpr (std::numeric_limits<T>::is_specialized)
    return T(std::numeric_limits<T>::lowest() / 4);
  else
    return T(std::numeric_limits<typename T::value_type>::lowest() / 4);  // a SIMD batch
}

/// The reference a row starts from.
template <class Normalizer, class Bound, class T>
ATTUNE_HD T initial_reference([[maybe_unused]] Bound const& normalizer) {
  if constexpr (Normalizer::traits.reference == mass_reference::none)
    return T(0);
  else if constexpr (needs_lowest_reference<Normalizer>)
    return math::larger(unseen_reference<T>(), normalizer.lowest_reference());
  else
    return unseen_reference<T>();
}

/// What `finish` makes of the masses: out = acc * value_factor + ground_weight * v0.
template <class T>
struct finished_row {
  T value_factor, ground_weight, lse;
};

/// Divides a row's masses; degenerate rows by the contract (docs/contracts.md). `visible` is K, over all parts of the row.
/// lse is that of the shifted logits: the row constant is still to be added.
template <class Normalizer, class Bound, class T>
ATTUNE_HD finished_row<T> finish_masses([[maybe_unused]] Bound const& normalizer, T const& m, T const& earned, T const& ground,
                                        T const& visible) {
  constexpr normalizer_traits is = Normalizer::traits;
  T const zero(0), one(1);
  if constexpr (is.divided_by == divisor::one)
    return {one, ground, zero};
  else if constexpr (is.divided_by == divisor::count) {
    T const inverse = math::select(visible == zero, zero, T(one / visible));
    return {inverse, T(ground * inverse), zero};
  } else {
    T unearned = ground;
    if constexpr (is.constant_mass) unearned = unearned + normalizer.constant(m);
    T const z = earned + unearned;
    auto const dead = z == zero;  // no mass at all: no key, or every logit -inf
    T const inverse = math::select(dead, zero, T(one / z));
    T weight = math::select(dead, zero, T(unearned / z));  // a division: all of the mass is a weight of exactly 1
    if constexpr (is.constant_mass) weight = math::select(dead, one, weight);
    if constexpr (is.ground_mass) weight = math::select(visible == zero, one, weight);
    T const lse = math::select(dead, T(-math::infinity<T>()), T(m + math::log(z)));
    return {inverse, weight, lse};
  }
}

/// The state of one row, of any scalar. Sizes: acc has Dv entries.
template <class T>
struct row_state {
  T reference, earned, ground;
  std::vector<T> acc;

  /// The unit of `merge` for a bound normalizer.
  template <class Normalizer, class Bound>
  static row_state empty(Bound const& normalizer, index_t width) {
    return {initial_reference<Normalizer, Bound, T>(normalizer), T(0), T(0), std::vector<T>(std::size_t(width), T(0))};
  }

  /// Expresses all masses relative to a higher reference.
  void raise(T const& higher) {
    if (reference == higher) return;
    T const factor = math::exp_nonpositive(T(reference - higher));
    earned = earned * factor;
    ground = ground * factor;
    for (T& x : acc) x = x * factor;
    reference = higher;
  }

  /// Adds one visible key of logit a; value(d) gives its value vector.
  template <class Normalizer, class Bound, class Value>
  void absorb(Bound const& normalizer, T const& a, Value const& value) {
    if constexpr (Normalizer::traits.reference == mass_reference::running_maximum) raise(math::larger(reference, a));
    T const mass = normalizer.earned(a, reference);
    earned = earned + mass;
    if constexpr (Normalizer::traits.ground_mass) ground = ground + normalizer.ground(a, reference);
    for (std::size_t d = 0; d < acc.size(); ++d) acc[d] = acc[d] + mass * value(index_t(d));
  }

  /// The state of both sets of keys. Associative and commutative up to rounding.
  friend row_state merge(row_state a, row_state b) {
    T const m = math::larger(a.reference, b.reference);
    a.raise(m);
    b.raise(m);
    a.earned = a.earned + b.earned;
    a.ground = a.ground + b.ground;
    for (std::size_t d = 0; d < a.acc.size(); ++d) a.acc[d] = a.acc[d] + b.acc[d];
    return a;
  }
};

}  // namespace attune
