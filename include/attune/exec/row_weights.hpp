// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   w_j = e(a_j) factor + share      w_j = e^(a_j - m) (a_j - low) factor      w_j = weight(level, a_j) factor
//
// The weight of a key, from its logit and from what a forward pass saved of its row (exec/saved.hpp). One rule per
// family. For executors that visit the rows a second time.
#pragma once

#include <attune/operators/row_state.hpp>

namespace attune::detail {

/// Everything that a weight depends on besides its logit. Each family uses the members that it needs.
template <class V>
struct row_weights {
  V reference, factor, share, ground, low, lowest;
  candidate_threshold<V> level;
};

/// Computes the members from the saved arrays of a row; `saved` reads one array. `visible` is K.
template <class Op, class Rows, class Bound, class V, class Saved>
ATTUNE_HD row_weights<V> weights_of_row(Rows const& rows, Bound const& normalizer, [[maybe_unused]] V const& visible,
                                        Saved const& saved) {
  constexpr normalizer_traits is = Op::normalizer_is;
  V const zero(0);
  row_weights<V> w{saved(rows.reference), zero, zero, zero, zero, zero, {}};
  if constexpr (is.family == row_family::sparse_support) {
    w.level = {w.reference, saved(rows.level), saved(rows.cut), saved(rows.last)};
    w.factor = finish_candidates(normalizer, w.level, saved(rows.sum), zero).value_factor;
  } else if constexpr (is.family == row_family::range_weighted) {
    w.lowest = saved(rows.lowest);
    auto const done = finish_adjusted(normalizer, w.reference, saved(rows.earned), w.lowest, w.reference);
    w.factor = done.value_factor;
    w.low = done.low;
  } else {
    auto const done = finish_masses<typename Op::normalizer_policy>(normalizer, w.reference, saved(rows.earned),
                                                                    saved(rows.ground), visible);
    w.factor = done.value_factor;
    w.share = done.share;
    if constexpr (Op::has_ground_weight) w.ground = done.ground_weight;
  }
  return w;
}

/// The weight of a visible key with logit a.
template <class Op, class Bound, class V>
ATTUNE_HD ATTUNE_INLINE V weight_of(Bound const& normalizer, row_weights<V> const& w, V const& a,
                                    [[maybe_unused]] key<V> const& at) {
  constexpr normalizer_traits is = Op::normalizer_is;
  if constexpr (is.family == row_family::sparse_support) {
    return normalizer.weight(w.level, a, at) * w.factor;
  } else if constexpr (is.family == row_family::range_weighted) {
    // Only rounding puts a logit below the lowest one. -inf does not count as a logit: its place is 0.
    V const place = math::select(a == V(-math::infinity<V>()), V(0), V(math::larger(a, w.lowest) - w.low));
    return math::exp_nonpositive(V(a - w.reference)) * place * w.factor;
  } else {
    V e = earned_mass<typename Op::normalizer_policy>(normalizer, a, w.reference) * w.factor;
    if constexpr (is.uniform_share) e = e + w.share;
    return e;
  }
}

/// -w log w; 0 at w = 0, NaN for w < 0.
template <class V>
ATTUNE_HD ATTUNE_INLINE V entropy_of(V const& w) {
  V const undefined = V(math::infinity<V>()) - V(math::infinity<V>());
  return math::select(w < V(0), undefined, V(-(w * math::log(math::larger(w, scalar<V>::least())))));
}

}  // namespace attune::detail
