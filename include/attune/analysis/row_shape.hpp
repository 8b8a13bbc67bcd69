// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   mass = sum w,   H = -sum w log w,   H of w / mass,   max w,   w_0
//
// The shape of one given row of weights. statistics() (exec/statistics.hpp) computes the same for whole operators while
// keys stream.
#pragma once

#include <attune/analysis/numbers.hpp>

namespace attune::analysis {

/// The shape of one row of weights w.
template <class T>
struct row_shape {
  T mass,                ///< sum w
      highest,           ///< max w; 0 for an empty row
      first_key;         ///< w_0, the weight of the first key; 0 for an empty row
  T entropy;             ///< nats, 0 log 0 = 0, of the weights without normalization; NaN if any is negative
  T normalized_entropy;  ///< of w / mass: H / mass + log mass; 0 in a row without mass
  T effective_keys;      ///< e^normalized_entropy; 0 in a row without mass
  /// The mass that no key has: 1 - mass, if weights and sink sum to 1. The ground_weight of the statistics gives it
  /// without cancellation.
  T sink_share;
};

/// -sum w log w
template <numbers R, class T = number_of<R>>
T entropy(R const& w) {
  T h(0);
  for (T const& x : w) h = h - (x == T(0) ? T(0) : T(x * math::log(x)));
  return h;
}

/// Measures one row of weights, which need not sum to 1. O(keys).
template <numbers R, class T = number_of<R>>
row_shape<T> shape_of(R const& w) {
  row_shape<T> s{sum(w), T(0), T(0), entropy(w), T(0), T(0), T(0)};
  s.sink_share = T(1) - s.mass;
  if (count_of(w) == 0) return s;
  s.first_key = *std::ranges::begin(w);
  s.highest = s.first_key;
  for (T const& x : w) s.highest = math::larger(s.highest, x);
  if (s.mass == T(0)) return s;
  s.normalized_entropy = s.entropy / s.mass + math::log(s.mass);
  s.effective_keys = math::exp(s.normalized_entropy);
  return s;
}

}  // namespace attune::analysis
