// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   dL/dE, dL/dG, dL/d(everything that a row's finish reads)
//
// With h_j = <do, v_j> and h_0 = <do, v0> + dw0, a row is a function of the masses E = sum e_j, G = sum g_j and of
// S = sum e_j h_j:   L = A(E, G) S + share(E, G) sum h_j + w0(E, G) h_0 + lse(E, G) dlse.
// The row rules of fused executors: what depends on a single key is left to them. The dense reference has its own, on purpose.
#pragma once

#include <attune/core/dual.hpp>
#include <attune/operators/row_state.hpp>

namespace attune::detail {

/// Sums over the visible keys of a row that its gradient needs.
template <class T>
struct row_gains {
  T value_sum;    ///< sum e_j h_j
  T plain_sum;    ///< sum h_j, of a uniform share
  T ground_gain;  ///< h_0
  T by_lse;       ///< dlse
};

/// Family masses: key j moves L by  h_j de_j factor + by[0] de_j / earned_unit + by[1] dg_j / ground_unit,  and everything else by
/// by[k]. Units, so that neither 1/E nor 1/E^2 is ever formed.
template <class T, int N>
struct mass_slopes {
  finished_row<dual<T, N>> done;
  T by[N], earned_unit, ground_unit;
};

/// Directions 0 and 1 of the duals are E and G, the others are the caller's; `logit_shift` is what the lse moves with.
template <class Op, class Bound, class T, int N>
ATTUNE_HD mass_slopes<T, N> slopes_of_masses(Bound const& normalizer, T const& reference, T const& earned, T const& ground,
                                             dual<T, N> const& visible, dual<T, N> const& logit_shift,
                                             row_gains<T> const& gains) {
  using D = dual<T, N>;
  constexpr normalizer_traits is = Op::normalizer_is;
  T const one(1), zero(0);
  mass_slopes<T, N> s;
  // Any unit will do, but one that rounds would leave a rest where gains cancel (a single key that shares uniformly), and one
  // below the normal numbers would overflow where it divides.
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
      sum = sum + chained(gains.by_lse, math::select(dead, zero, T(s.done.lse.tangent[k] + logit_shift.tangent[k])));
    s.by[k] = sum;
  }
  return s;
}

/// Family adjusted, w_j = p_j f_j with p_j = e_j / E and f_j = (a_j - low) / (high - low): the weight of a key, and
/// da_j = p_j h_j f' + p_j (h_j f_j - sum p h f) + p_j dlse, without what goes through the ends. The first term is apart: where logits
/// lie close to each other and f' is large it is to meet what goes through the ends, which may cancel it, before the others.
template <class T>
struct adjusted_pair {
  T inverse_earned, inverse, low, mean, by_lse, value_factor;

  struct pulled {
    T weight, by_range, by_rest;
  };
  ATTUNE_HD ATTUNE_INLINE pulled pull(T const& a, T const& reference, T const& h) const {
    T const p = math::exp_nonpositive(T(a - reference)) * inverse_earned;
    T const place = math::select(a == -math::infinity<T>(), T(0), T((a - low) * inverse));
    return {T(p * place), chained(p, T(h * inverse)), chained(p, T((h * place - mean) + by_lse))};
  }
};
template <class T, int N>
struct adjusted_slopes {
  adjusted_pair<T> pair;
  T by[N];
};

/// Directions 0 and 1 of the duals are the lowest and the highest logit, the next `Shifts` (0 or 1) the row constant, the
/// others are the caller's.
/// value_sum = sum e_j h_j, second_sum = sum e_j (a_j - reference) h_j.
template <bool Detached, int N, int Shifts, class Bound, class T>
ATTUNE_HD adjusted_slopes<T, N> slopes_of_adjusted(Bound const& normalizer, T const& reference, T const& earned,
                                                   T const& lowest, T const& value_sum, T const& second_sum, T const& by_lse) {
  using D = dual<T, N>;
  T const zero(0), one(1);
  auto const dead = earned == zero;
  auto const ends = normalizer.ends(D::variable(lowest, 0), D::variable(reference, 1));
  T const low = ends.low.value, high = ends.high.value, range = as_divisor(T(high - low));
  T const inverse = math::select(range == zero, zero, T(one / range));
  T const inverse_earned = math::select(dead, zero, T(one / earned));
  auto const alive = [&](T const& x) { return math::select(dead, zero, x); };
  // The places of the highest logit seen from low and from high; 1 and -1 are exact, so that a row of one key has sums of h and -h.
  auto const place = [&](T const& distance, T const& exactly) {
    T const of_end = math::select(range == zero, zero, exactly);
    return math::select(distance == exactly * range, of_end, T(distance * inverse));
  };
  T const above = alive(T((second_sum * inverse + place(reference - low, one) * value_sum) * inverse_earned));  // sum p h f
  T const below = alive(T((second_sum * inverse + place(reference - high, T(-one)) * value_sum) * inverse_earned));
  T const by_low = below * inverse, by_high = -(above * inverse);
  adjusted_slopes<T, N> s{{inverse_earned, inverse, alive(low), above, by_lse, T(inverse * inverse_earned)}, {}};
  for (int k = 0; k < N; ++k) {
    T const through_ends = chained(by_low, ends.low.tangent[k]) + chained(by_high, ends.high.tangent[k]);
    if constexpr (Detached)  // ends that stand still move against logits that leave their row constant out
      s.by[k] = Shifts != 0 && k == 2 ? T(-(by_low + by_high)) : zero;
    else
      s.by[k] = alive(through_ends);
  }
  if constexpr (Shifts != 0) s.by[2] = s.by[2] + alive(by_lse);
  return s;
}

}  // namespace attune::detail
