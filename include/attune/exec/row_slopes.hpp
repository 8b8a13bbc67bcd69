// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   dL/dE, dL/dG, dL/d(everything that a row's finish reads), and what each pair contributes
//
// With h_j = <do, v_j> and h_0 = <do, v0> + dw0, a row is a function of the masses E = sum e_j, G = sum g_j and of
// S = sum e_j h_j:   L = A(E, G) S + share(E, G) sum h_j + w0(E, G) h_0 + lse(E, G) dlse.
// The gradient rules of the fused executors, for rows and for pairs. The executors decide which keys a row sees and
// where results go. The dense reference has its own rules, on purpose.
#pragma once

#include <attune/core/dual.hpp>
#include <attune/operators/row_state.hpp>

namespace attune::detail {

/// The sums over the visible keys of a row that its gradient needs.
template <class T>
struct row_gains {
  T value_sum;    ///< sum e_j h_j
  T plain_sum;    ///< sum h_j, for a uniform share
  T ground_gain;  ///< h_0
  T d_lse;        ///< dlse
};

/// One pair of family masses: the weight of the key, and the gradient by its logit. T: a scalar or a batch of rows.
template <class T>
struct mass_pair {
  T factor, share, by_earned, d_ground_weight;

  struct pulled {
    T weight, by_logit;
  };
  /// by_e = h_j factor + by_earned. Direction 0 of D is the logit a. The `Count` directions from `First` on belong to
  /// the normalizer: move(s, gradient) receives their gradients from this pair.
  template <class Op, class D, int First, int Count, chain_rule Rule, class Bound, class Move>
  ATTUNE_HD ATTUNE_INLINE pulled pull(Bound const& normalizer, T const& a, T const& reference, T const& by_e,
                                      [[maybe_unused]] Move const& move) const {
    constexpr normalizer_traits is = Op::normalizer_is;
    D const m(reference), e = earned_mass<typename Op::normalizer_policy>(normalizer, D::variable(a, 0), m);
    pulled p{T(e.value * factor), chained<Rule>(by_e, e.tangent[0])};
    if constexpr (is.uniform_share) p.weight = p.weight + share;
    D g;
    if constexpr (is.ground_mass) {
      g = normalizer.ground(D::variable(a, 0), m);
      p.by_logit = p.by_logit + chained<Rule>(d_ground_weight, g.tangent[0]);
    }
    if constexpr (Rule == chain_rule::guarded)
      p.by_logit = math::select(factor == factor, p.by_logit, factor);  // NaN row: NaN for every key it sees
    for (int s = 0; s < Count; ++s) {
      T by = chained<Rule>(by_e, e.tangent[First + s]);
      if constexpr (is.ground_mass) by = by + chained<Rule>(d_ground_weight, g.tangent[First + s]);
      move(s, by);
    }
    return p;
  }
};

/// Family masses. Key j changes L by  h_j de_j factor + by[0] de_j / earned_unit + by[1] dg_j / ground_unit.
/// Direction k > 1 changes L by by[k]. With the units, neither 1/E nor 1/E^2 is ever formed.
template <class T, int N>
struct mass_slopes {
  finished_row<dual<T, N>> done;
  T by[N], earned_unit, ground_unit;
  ATTUNE_HD mass_pair<T> pair() const {
    return {done.value_factor.value, done.share.value, T(by[0] / earned_unit), T(by[1] / ground_unit)};
  }
};

/// Directions 0 and 1 of the duals are E and G, the others are the caller's. The lse moves with `logit_shift`.
template <class Op, class Bound, class T, int N>
ATTUNE_HD mass_slopes<T, N> slopes_of_masses(Bound const& normalizer, T const& reference, T const& earned,
                                             T const& ground, dual<T, N> const& visible, dual<T, N> const& logit_shift,
                                             row_gains<T> const& gains) {
  using D = dual<T, N>;
  constexpr normalizer_traits is = Op::normalizer_is;
  T const one(1), zero(0);
  mass_slopes<T, N> s;
  // Every unit is correct in exact arithmetic; these are powers of two. A unit that rounds would leave a remainder
  // where gains cancel (a single key with a uniform share). A unit below the normal numbers would overflow in the
  // division.
  T const least = scalar<T>::least();
  s.earned_unit = scalar<T>::binade(math::select(earned < least, one, earned));
  s.ground_unit = scalar<T>::binade(math::select(ground < least, one, ground));
  D total_earned(earned), total_ground(ground);
  total_earned.tangent[0] = s.earned_unit;
  total_ground.tangent[1] = s.ground_unit;
  s.done = finish_masses<typename Op::normalizer_policy>(normalizer, D(reference), total_earned, total_ground, visible);
  auto const dead = s.done.lse.value == -math::infinity<T>();  // no mass at all: the lse does not move
  for (int k = 0; k < N; ++k) {
    T sum = chained(gains.value_sum, s.done.value_factor.tangent[k]);
    if constexpr (is.uniform_share) sum = sum + chained(gains.plain_sum, s.done.share.tangent[k]);
    if constexpr (Op::has_ground_weight || Op::uses(field::v0))
      sum = sum + chained(gains.ground_gain, s.done.ground_weight.tangent[k]);
    if constexpr (Op::has_lse)
      sum = sum + chained(gains.d_lse, math::select(dead, zero, T(s.done.lse.tangent[k] + logit_shift.tangent[k])));
    s.by[k] = sum;
  }
  return s;
}

/// Family range_weighted, w_j = p_j f_j with p_j = e_j / E and f_j = (a_j - low) / (high - low): the weight of a key,
/// and da_j = p_j h_j f' + p_j (h_j f_j - sum p h f) + p_j dlse, without the part through the ends (low and high). The
/// first term is separate. Where logits are close together, f' is large, and the part through the ends may cancel this
/// term. So those two must be added before the others.
template <class T>
struct adjusted_pair {
  T inverse_earned, inverse, low, mean, d_lse, value_factor;

  struct pulled {
    T weight, by_range, by_rest;
  };
  ATTUNE_HD ATTUNE_INLINE pulled pull(T const& a, T const& reference, T const& h) const {
    T const p = math::exp_nonpositive(T(a - reference)) * inverse_earned;
    T const place = math::select(a == -math::infinity<T>(), T(0), T((a - low) * inverse));
    return {T(p * place), chained(p, T(h * inverse)), chained(p, T((h * place - mean) + d_lse))};
  }
};
template <class T, int N>
struct adjusted_slopes {
  adjusted_pair<T> pair;
  T by[N];
};

/// Directions 0 and 1 of the duals are the lowest and the highest logit. The next `Shifts` (0 or 1) directions are the
/// row constant. The others are the caller's.
/// value_sum = sum e_j h_j, second_sum = sum e_j (a_j - reference) h_j.
template <bool Detached, int N, int Shifts, class Bound, class T>
ATTUNE_HD adjusted_slopes<T, N> slopes_of_adjusted(Bound const& normalizer, T const& reference, T const& earned,
                                                   T const& lowest, T const& value_sum, T const& second_sum,
                                                   T const& d_lse) {
  using D = dual<T, N>;
  T const zero(0), one(1);
  auto const dead = earned == zero;
  auto const ends = normalizer.ends(D::variable(lowest, 0), D::variable(reference, 1));
  T const low = ends.low.value, high = ends.high.value, range = as_divisor(T(high - low));
  T const inverse = math::select(range == zero, zero, T(one / range));
  T const inverse_earned = math::select(dead, zero, T(one / earned));
  auto const alive = [&](T const& x) { return math::select(dead, zero, x); };
  // The position of the highest logit, measured from low and from high, in units of the range. 1 and -1 are exact, so
  // that a row of one key has the sums h and -h.
  auto const place = [&](T const& distance, T const& exactly) {
    T const of_end = math::select(range == zero, zero, exactly);
    return math::select(distance == exactly * range, of_end, T(distance * inverse));
  };
  T const above =
      alive(T((second_sum * inverse + place(reference - low, one) * value_sum) * inverse_earned));  // sum p h f
  T const below = alive(T((second_sum * inverse + place(reference - high, T(-one)) * value_sum) * inverse_earned));
  T const by_low = below * inverse, by_high = -(above * inverse);
  adjusted_slopes<T, N> s{{inverse_earned, inverse, alive(low), above, d_lse, T(inverse * inverse_earned)}, {}};
  for (int k = 0; k < N; ++k) {
    T const through_ends = chained(by_low, ends.low.tangent[k]) + chained(by_high, ends.high.tangent[k]);
    if constexpr (Detached)  // fixed ends move relative to logits that exclude the row constant
      s.by[k] = Shifts != 0 && k == 2 ? T(-(by_low + by_high)) : zero;
    else
      s.by[k] = alive(through_ends);
  }
  if constexpr (Shifts != 0) s.by[2] = s.by[2] + alive(d_lse);
  return s;
}

/// A row of constants: nothing in it moves.
template <class D, class T>
ATTUNE_HD row<D> standing(row<T> const& r, T const& logit_shift) {
  row<D> s = lifted(r, lift<D>{});
  s.logit_shift = D(logit_shift);
  return s;
}

/// Family sparse_support. With y = -dp/dlevel at the level that keeps sum p constant, dL = sum dp_j (h_j - sum y h /
/// sum y) / sum p. A selection only chooses keys: there y = p, and the difference between p and its own derivative, p -
/// p', goes through the reference.
template <class T>
struct candidate_slopes {
  T mean, inverse_sum, through_reference;
  /// dL/dp_j
  ATTUNE_HD ATTUNE_INLINE T by_weight(T const& h) const { return (h - mean) * inverse_sum; }
};
/// The sums over the keys of a row. `Rule` is the normalizer's threshold_rule.
template <class T, threshold_rule Rule>
struct candidate_sums {
  static constexpr bool selects = Rule == threshold_rule::selection;
  using D = dual<T, 1>;
  T weights = T(0), slope = T(0), gains = T(0), lag = T(0), lag_gains = T(0);

  /// The threshold, with its level as the direction of D. For a selection, the logit is the direction instead.
  ATTUNE_HD static candidate_threshold<D> moving(candidate_threshold<T> const& at) {
    return {D(at.reference), selects ? D(at.level) : D::variable(at.level, 0), D(at.cut), D(at.last)};
  }
  ATTUNE_HD static D moving(T const& logit) { return selects ? D::variable(logit, 0) : D(logit); }

  /// Adds a key of weight p and gain h = <do, v>. `weights` already contains p. Where p is 0, the gain is ignored.
  ATTUNE_HD ATTUNE_INLINE void add(D const& p, T const& gain) {
    T const zero(0), h = math::select(p.value == zero, zero, gain);
    T const y = selects ? p.value : T(-p.tangent[0]);
    slope = slope + y;
    gains = gains + chained(h, y);
    if constexpr (selects) {
      T const rest = math::select(p.value == zero, zero, T(p.value - p.tangent[0]));
      lag = lag + rest;
      lag_gains = lag_gains + chained(h, rest);
    }
  }
  ATTUNE_HD void add(candidate_sums const& block) {
    slope = slope + block.slope;
    gains = gains + block.gains;
    lag = lag + block.lag;
    lag_gains = lag_gains + block.lag_gains;
  }
  /// For a row of `keys` keys.
  ATTUNE_HD candidate_slopes<T> finish(T const& keys) const {
    T const zero(0), one(1);
    // The sum of a deformed exponential is 1 up to rounding: dividing by it would only disturb exact ties.
    T const rounding = (keys + T(8)) * scalar<T>::epsilon();
    T const whole = math::select(math::abs(T(weights - one)) <= rounding, one, weights);
    candidate_slopes<T> s{math::select(slope == zero, zero, T(gains / slope)),
                          math::select(whole == zero, zero, T(one / whole)), zero};
    if constexpr (selects) s.through_reference = (lag_gains - s.mean * lag) * s.inverse_sum;
    return s;
  }
};

}  // namespace attune::detail
