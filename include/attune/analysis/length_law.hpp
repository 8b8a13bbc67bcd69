// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   w = 1 / (1 + (K - 1) e^(-f gap)),   f = the length scale's image of a gap of 1 at K keys
//
// The weight of one key that leads K - 1 equal keys by a gap: shows whether a length scale keeps it.
#pragma once

#include <attune/analysis/numbers.hpp>
#include <attune/core/row.hpp>

namespace attune::analysis {

/// For any LengthScalePolicy, bound to a row of K keys; parameters are read at (0, 0, 0).
/// f = c log K has a threshold: the weight goes to 1, stays constant, or goes to 0 if c gap is above, at or below 1.
/// Throws attune::error unless K >= 1. Source: our own, for Principled Attention 3.2.3 and Limits of Normalization,
/// section 4.
template <class LengthScale, class T>
T leading_weight(LengthScale const& length_scale, index_t keys, T const& gap) {
  detail::require_count("analysis::leading_weight", "keys", keys, 1, (std::numeric_limits<index_t>::max)());
  row<T> r{};
  r.visible = T(double(keys));
  r.log_visible = math::log(r.visible);
  r.keys = r.visible;
  auto const bound = length_scale.bind(r);
  T const lead = bound.scale(gap) - bound.scale(T(0));
  return T(1) / (T(1) + T(double(keys - 1)) * math::exp(T(-lead)));
}

}  // namespace attune::analysis
