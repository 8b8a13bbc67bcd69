// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   w_j = e^{a_j} / sum of e^a over the k largest logits,   0 for all other keys
#pragma once

#include <tuple>

#include <attune/policies/candidates.hpp>

namespace attune::normalizer {

/// Formula:  w = softmax over the k largest visible logits
/// Recovers: softmax where K <= k.
/// Requires: k >= 1.
/// Axioms:   shift invariant; sum w = 1; exactly min(k, K) keys have weight (of those with a finite logit). Ties at the
///           k-th largest logit go to the lower key index.
/// Numerics: selection is exact; the softmax is over the kept logits. Other keys are never read into a result. Output
///           .threshold is the k-th largest logit (-inf where there are fewer than k).
/// Cost:     softmax and one selection per row.
/// State:    candidate set of k keys; merging is exact.
/// Backends: all that keep a candidate set.
/// Source:   "Limits of normalization", guideline 1.
/// Example:  docs/reference/operators.md
struct top_k {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.family = row_family::sparse_support,
                                            .threshold = threshold_rule::selection};
  index_t k = 8;  ///< number of keys with weight, at least 1

  constexpr top_k() = default;
  /// With k = count. Throws attune::error if it is below 1.
  constexpr explicit top_k(index_t count) : k(count) {
    if (count < 1) throw error("normalizer::top_k", "k", attune::detail::text("the value ", count), "at least 1");
  }
  static constexpr auto parameters() { return std::tuple<>{}; }

  template <class T>
  struct bound {
    index_t k;  ///< number of keys to keep
    T shift;    ///< the row constant of the length scale
    /// Finds the k-th largest logit and drops the keys below it from the column.
    template <class Column>
    ATTUNE_HD candidate_threshold<T> solve(Column& column) const {
      T const off = -math::infinity<T>();
      T const m = column.highest();
      candidate_threshold<T> at{math::select(m == off, T(0), m), T(0), off, off};
      column.largest(k, at.cut, at.last);
      column.keep([&](T const& a) { return math::select(a >= at.cut, T(1), T(0)); });
      return at;
    }
    /// The mass of a key with logit a: e^(a - reference) if it is kept, else 0.
    ATTUNE_HD ATTUNE_INLINE T weight(candidate_threshold<T> const& at, T const& a, key<T> const& j) const {
      T const zero(0), w = math::exp_nonpositive(T((a - at.reference) - at.level));
      return math::select(a > at.cut, w, math::select(a == at.cut, math::select(j.position <= at.last, w, zero), zero));
    }
    /// Output .threshold: the k-th largest true logit.
    ATTUNE_HD T reported(candidate_threshold<T> const& at) const { return at.cut + shift; }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {k, r.logit_shift};
  }
};

}  // namespace attune::normalizer
