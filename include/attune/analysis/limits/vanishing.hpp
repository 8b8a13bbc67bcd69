// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   C1 / L <= alpha_i <= C2 / L,   C1 = min F / max F,   C2 = max F / min F
//
// Lemma 1 and Corollary 1: bounds of the weights in a row of L bounded logits.
#pragma once

#include <attune/analysis/numbers.hpp>

namespace attune::analysis {

/// All weights of a row lie in [lower, upper]. The sharp bounds are attained if one key is at one end of F and all
/// others are at the other end.
template <class T>
struct weight_range {
  T lower,          ///< C1 / L, as printed
      upper;        ///< C2 / L, as printed
  T sharp_lower,    ///< a / (a + (L - 1) A)
      sharp_upper;  ///< A / (A + (L - 1) a)
};

/// Lemma 1 for alpha = F(l) / sum F(l), with F within [least, greatest] on the logits. Shapes: scalars, L >= 1 keys.
/// Not for normalizers of another form: sparsemax of (2, 0, ..., 0) is 1 for every L.
/// Throws attune::error unless 0 < least <= greatest. Source: Limits of Normalization, Lemma 1; the sharp bounds are
/// our own.
template <class T>
weight_range<T> vanishing_weights(T const& least, T const& greatest, index_t keys) {
  detail::require_positive("analysis::vanishing_weights", "least", least);
  detail::require_count("analysis::vanishing_weights", "keys", keys, 1, (std::numeric_limits<index_t>::max)());
  if (greatest < least)
    throw error("analysis::vanishing_weights", "greatest", attune::detail::text("the value ", double(greatest)),
                attune::detail::text("at least least, ", double(least)));
  T const n = T(double(keys)), others = T(double(keys - 1)), low = least / greatest, high = greatest / least;
  return {low / n, high / n, keys == 1 ? T(1) : T(low / (low + others)), T(1) / (T(1) + others * low)};
}

/// Delta = |q| max_j |k_j|: no score of the row is larger. The norm of a single key would not give a bound.
template <numbers Q, class T = number_of<Q>>
T score_bound(Q const& q, points<T> const& keys) {
  T longest(0);
  for (index_t j = 0; j < keys.count(); ++j) longest = math::larger(longest, norm(keys[j]));
  return norm(q) * longest;
}

/// Corollary 1: softmax(l / T) of logits in [-Delta, Delta]: the range of e^l is [e^(-Delta / T), e^(Delta / T)].
/// Throws attune::error unless T > 0 and Delta >= 0. Source: Limits of Normalization, Corollary 1.
template <class T>
weight_range<T> vanishing_softmax(T const& delta, T const& temperature, index_t keys) {
  detail::require_positive("analysis::vanishing_softmax", "temperature", temperature);
  if (!(delta >= T(0)))
    throw error("analysis::vanishing_softmax", "delta", attune::detail::text("the value ", double(delta)),
                "a number >= 0");
  detail::require_count("analysis::vanishing_softmax", "keys", keys, 1, (std::numeric_limits<index_t>::max)());
  T const n = T(double(keys)), others = T(double(keys - 1)), spread = T(2) * delta / temperature;
  T const low = math::exp(T(-spread)), high = math::exp(spread);
  return {low / n, high / n, keys == 1 ? T(1) : T(low / (low + others)), T(1) / (T(1) + others * low)};
}

}  // namespace attune::analysis
