// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   state = (m, earned, ground, acc):  earned = sum e(a_j) e^-m,  ground = sum g(a_j) e^-m,  acc = sum e(a_j) e^-m v_j
//
// The state that streaming keeps of a row: a commutative monoid under `merge`, up to rounding, with the empty state as
// unit. Split-KV decode, threads, ring attention and an MPI reduction all use this merge. The constant mass of a sink
// is not in the state: it enters once, in `finish`.
#pragma once

#include <limits>
#include <vector>

#include <attune/core/tiny.hpp>
#include <attune/policies/concepts.hpp>

namespace attune {

/// The reference of a row before any key: lower than every logit that counts.
template <class T>
ATTUNE_HD T initial_max() {
  return math::lowest_logit<T>();
}

/// The reference that a row starts with.
template <class Normalizer, class Bound, class T>
ATTUNE_HD T initial_reference([[maybe_unused]] Bound const& normalizer) {
  if constexpr (Normalizer::traits.reference == mass_reference::none)
    return T(0);
  else if constexpr (needs_lowest_reference<Normalizer>)
    return math::larger(initial_max<T>(), normalizer.lowest_reference());
  else
    return initial_max<T>();
}

/// The divisor x of a row; 0 where x is below the smallest normal number. Its inverse might overflow, so the row counts
/// as a row without a divisor. Masses relative to a maximum are never that small. Masses of `mass_reference::none` and
/// the distance of two logits can be.
template <class T>
ATTUNE_HD ATTUNE_INLINE T as_divisor(T const& x) {
  return attune::detail::zero_if_subnormal(x);
}

/// The factors that `finish` computes from the masses: out = acc * value_factor + values * share + ground_weight * v0,
/// where `values` is the plain sum of all visible values.
template <class T>
struct finished_row {
  T value_factor,     ///< factor of the value sum
      ground_weight,  ///< weight of v0
      lse,            ///< log-sum-exp of the shifted logits; 0 if the masses are not divided by their sum
      share;          ///< weight that every visible key gets in addition
};

/// Whether a mass that is tiny counts as 0, and its slope too. Below a running maximum, normalizers make masses by
/// math::exp_nonpositive, which never returns a tiny number. A sum without a reference may be tiny as a whole.
template <class Normalizer>
inline constexpr bool drops_tiny_masses =
    Normalizer::traits.reference == mass_reference::none && Normalizer::traits.divided_by != divisor::sum;

/// The mass of a key with logit a.
template <class Normalizer, class Bound, class T>
ATTUNE_HD ATTUNE_INLINE T earned_mass(Bound const& normalizer, T const& a, T const& m) {
  if constexpr (drops_tiny_masses<Normalizer>)
    return attune::detail::zero_if_tiny(T(normalizer.earned(a, m)));
  else
    return normalizer.earned(a, m);
}

/// Divides a row's masses; degenerate rows follow the contract (docs/reference/contracts.md). `visible` is K, over all
/// parts of the row. lse is for the shifted logits: the caller adds the row constant.
template <class Normalizer, class Bound, class T>
ATTUNE_HD finished_row<T> finish_masses([[maybe_unused]] Bound const& normalizer, T const& m, T const& earned,
                                        T const& ground, T const& visible) {
  constexpr normalizer_traits is = Normalizer::traits;
  T const zero(0), one(1);
  finished_row<T> f{one, ground, zero, zero};
  if constexpr (is.divided_by == divisor::one) {
    if constexpr (is.uniform_share) f.share = normalizer.uniform_share(earned, visible);
  } else if constexpr (is.divided_by == divisor::count) {
    auto const none = visible == zero;
    f.value_factor = math::select(none, zero, detail::quotient(one, visible));
    f.ground_weight = ground * f.value_factor;
    if constexpr (is.uniform_share) f.share = math::select(none, zero, normalizer.uniform_share(earned, visible));
  } else {
    T unearned = ground;
    if constexpr (is.constant_mass) unearned = unearned + normalizer.constant(m);
    T const z = as_divisor(T(earned + unearned));
    auto const dead = z == zero;  // no mass: no key, every logit -inf, or masses that underflow
    f.value_factor = math::select(dead, zero, detail::quotient(one, z));
    f.ground_weight = math::select(
        dead, zero, detail::quotient(unearned, z));  // a division: if the ground has all mass, its weight is exactly 1
    if constexpr (is.constant_mass) f.ground_weight = math::select(dead, one, f.ground_weight);
    if constexpr (is.ground_mass) f.ground_weight = math::select(visible == zero, one, f.ground_weight);
    f.lse = math::select(dead, T(-math::infinity<T>()), T(m + math::log(z)));
    if constexpr (is.uniform_share) f.share = math::select(dead, zero, normalizer.uniform_share(earned, visible));
  }
  if constexpr (is.weight_factor && OffersWeightFactorOfSums<Normalizer>) {
    typename scalar<T>::mask none = visible == zero;  // a row without weights: whatever its factor is
    none = none | (f.value_factor == zero);
    f.value_factor = math::select(none, zero, T(f.value_factor * normalizer.weight_factor(earned, visible)));
  } else if constexpr (is.weight_factor) {
    f.value_factor = f.value_factor * normalizer.weight_factor();
  }
  return f;
}

/// The factors that `finish` computes for a row of family range_weighted: w = e (a - low) value_factor.
template <class T>
struct finished_adjustment {
  T value_factor,  ///< 1 / (mass (high - low)); 0 in a row without mass, or with high = low
      low,         ///< the logit whose weight is 0
      lse;         ///< log-sum-exp of the shifted logits
};

/// Family range_weighted: divides by the mass and by the distance of the ends.
template <class Bound, class T>
ATTUNE_HD finished_adjustment<T> finish_adjusted(Bound const& normalizer, T const& m, T const& earned, T const& lowest,
                                                 T const& highest) {
  T const zero(0), one(1);
  auto const dead = earned == zero;
  auto const ends = normalizer.ends(lowest, highest);
  T const range = as_divisor(T(ends.high - ends.low));
  T const inverse = math::select(range == zero, zero, detail::quotient(one, range));
  return {math::select(dead, zero, detail::quotient(inverse, earned)), math::select(dead, zero, ends.low),
          math::select(dead, T(-math::infinity<T>()), T(m + math::log(earned)))};
}

/// The factors that `finish` computes for a row of family sparse_support: w = weight(threshold, a) value_factor.
template <class T>
struct finished_candidates {
  T value_factor,  ///< 1 / sum of weights; 0 if there is none
      threshold;   ///< as the normalizer reports it; NaN in a row without any weight
};

/// Family sparse_support: divides by the sum of weights. `poison` is the sum of nan_carrier. A row without any weight
/// has weights 0 and threshold NaN.
template <class Bound, class T>
ATTUNE_HD finished_candidates<T> finish_candidates(Bound const& normalizer, candidate_threshold<T> const& at,
                                                   T const& sum, T const& poison) {
  T const zero(0), one(1), none = math::infinity<T>() - math::infinity<T>();
  T const z = sum + poison;
  auto const dead = z == zero;
  return {math::select(dead, zero, detail::quotient(one, z)),
          math::select(dead, none, T(normalizer.reported(at) + poison))};
}

/// Family sparse_support: NaN for a logit of NaN or +inf, else 0. Added to the sum of weights, it makes such a row NaN,
/// as the contract requires.
template <class T>
ATTUNE_HD ATTUNE_INLINE T nan_carrier(T const& a) {
  return math::select(a == -math::infinity<T>(), T(0), math::zero_if_finite(a));
}

/// The state of one row, for any scalar. acc has Dv entries; so has `second` if the family needs it, else none.
/// `Values` is a vector or any type of fixed size with the same indexing, size, range and constructor (count, value).
template <class T, class Values = std::vector<T>>
struct row_state {
  T reference,    ///< the shift subtracted before exponentials, usually the running maximum
      earned,     ///< sum of the masses of the keys
      ground,     ///< sum of the ground masses
      lowest;     ///< smallest logit above -inf; for family range_weighted only
  Values acc;     ///< sum e v
  Values second;  ///< uniform share: sum v; family range_weighted: sum e (a - reference) v

  /// The unit of `merge` for a bound normalizer.
  ATTUNE_UNCHECKED template <class Normalizer, class Bound>
  ATTUNE_HD static row_state empty(Bound const& normalizer, index_t width) {
    std::size_t const n = std::size_t(width);
    row_state s{initial_max<T>(),
                T(0),
                T(0),
                math::infinity<T>(),
                Values(n, T(0)),
                Values(has_second<Normalizer> ? n : 0, T(0))};
    if constexpr (Normalizer::traits.family == row_family::masses)
      s.reference = initial_reference<Normalizer, Bound, T>(normalizer);
    return s;
  }
  /// Whether a normalizer needs the sums `second`.
  template <class Normalizer>
  static constexpr bool has_second =
      Normalizer::traits.uniform_share || Normalizer::traits.family == row_family::range_weighted;

  /// Makes all masses relative to a higher reference.
  ATTUNE_UNCHECKED template <class Normalizer>
  ATTUNE_HD void raise(T const& higher) {
    if (reference == higher) return;
    T const factor = math::exp_nonpositive(T(reference - higher));
    earned = earned * factor;
    ground = ground * factor;
    if constexpr (Normalizer::traits.family == row_family::range_weighted)
      for (std::size_t d = 0; d < acc.size(); ++d) second[d] = (second[d] - (higher - reference) * acc[d]) * factor;
    for (T& x : acc) x = x * factor;
    reference = higher;
  }
  /// Adds one visible key with logit a; value(d) is feature d of its value vector.
  ATTUNE_UNCHECKED template <class Normalizer, class Bound, class Value>
  ATTUNE_HD void accumulate([[maybe_unused]] Bound const& normalizer, T const& a, Value const& value) {
    if constexpr (Normalizer::traits.reference == mass_reference::running_maximum)
      raise<Normalizer>(math::larger(reference, a));
    if constexpr (Normalizer::traits.family == row_family::range_weighted) {
      T const mass = math::exp_nonpositive(T(a - reference));
      bool const off = a == -math::infinity<T>();
      if (!off) lowest = math::smaller(lowest, a);
      earned = earned + mass;
      for (std::size_t d = 0; d < acc.size(); ++d) {
        T const v = value(index_t(d));
        acc[d] = acc[d] + mass * v;
        if (!off) second[d] = second[d] + mass * (a - reference) * v;
      }
    } else {
      T const mass = earned_mass<Normalizer>(normalizer, a, reference);
      earned = earned + mass;
      if constexpr (Normalizer::traits.ground_mass) ground = ground + normalizer.ground(a, reference);
      for (std::size_t d = 0; d < acc.size(); ++d) {
        T const v = value(index_t(d));
        acc[d] = acc[d] + mass * v;
        if constexpr (Normalizer::traits.uniform_share) second[d] = second[d] + v;
      }
    }
  }

  /// Merges the state of other keys of the same row. Associative and commutative up to rounding.
  ATTUNE_UNCHECKED template <class Normalizer>
  ATTUNE_HD void merge(row_state b) {
    T const m = math::larger(reference, b.reference);
    raise<Normalizer>(m);
    b.template raise<Normalizer>(m);
    lowest = math::smaller(lowest, b.lowest);
    earned = earned + b.earned;
    ground = ground + b.ground;
    for (std::size_t d = 0; d < acc.size(); ++d) acc[d] = acc[d] + b.acc[d];
    for (std::size_t d = 0; d < second.size(); ++d) second[d] = second[d] + b.second[d];
  }
};

/// The numbers of a finished row besides its values.
template <class T>
struct finished_numbers {
  T ground_weight,  ///< weight of v0
      lse;          ///< log-sum-exp of the shifted logits
};

/// Divides the state of all keys of a row: acc becomes the output before v0 and the output gate. `normalizer` is bound
/// to the row and `visible` is K. lse is for the shifted logits.
ATTUNE_UNCHECKED template <class Normalizer, class Bound, class T, class Values>
ATTUNE_HD finished_numbers<T> finish_state(row_state<T, Values>& s, Bound const& normalizer,
                                           [[maybe_unused]] T const& visible) {
  if constexpr (Normalizer::traits.family == row_family::range_weighted) {
    auto const done = finish_adjusted(normalizer, s.reference, s.earned, s.lowest, s.reference);
    T const above = s.reference - done.low;
    for (std::size_t d = 0; d < s.acc.size(); ++d) s.acc[d] = (s.second[d] + above * s.acc[d]) * done.value_factor;
    return {T(0), done.lse};
  } else {
    auto const done = finish_masses<Normalizer>(normalizer, s.reference, s.earned, s.ground, visible);
    for (std::size_t d = 0; d < s.acc.size(); ++d) {
      s.acc[d] = s.acc[d] * done.value_factor;
      if constexpr (Normalizer::traits.uniform_share) s.acc[d] = s.acc[d] + s.second[d] * done.share;
    }
    return {done.ground_weight, done.lse};
  }
}

}  // namespace attune
