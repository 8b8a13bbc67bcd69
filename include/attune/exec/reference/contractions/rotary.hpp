// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   x_ij = sum over pairs Re(z_q conj(z_k) e^(i (angle_q - angle_k))) + sum over the other features q_d k_d
//
// Rotary embeddings with complex numbers: z = first + i second for each pair of features. The factor e^(i ...) comes
// from the stored cosines and sines. The derivative is written by hand.
#pragma once

#include <attune/core/rotary_angles.hpp>
#include <attune/exec/problem_shape.hpp>

namespace attune::detail {

/// One pair of query and key.
template <class T, class Owner>
struct reference_rotary {
  Owner const& owner;
  lift<T> const& numbers;
  problem_shape const& p;
  index_t b, i, j;

  /// From q(d) and k(d).
  template <class Query, class Key>
  T value(Query const& q, Key const& k) const {
    T sum(0);
    for (index_t r = 0; r < pairs(); ++r) {
      auto const [first, second] = features(r);
      auto const [even, odd] = relative_angle(r);
      sum = sum + (q(first) * k(first) + q(second) * k(second)) * even;
      sum = sum - (q(second) * k(first) - q(first) * k(second)) * odd;
    }
    for (index_t d = 2 * pairs(); d < p.width; ++d) sum = sum + q(d) * k(d);
    return sum;
  }
  /// Calls by_query(d, derivative by q_d) and by_key(d, derivative by k_d).
  template <class Query, class Key, class ByQuery, class ByKey>
  void pull(Query const& q, Key const& k, ByQuery const& by_query, ByKey const& by_key) const {
    for (index_t r = 0; r < pairs(); ++r) {
      auto const [first, second] = features(r);
      auto const [even, odd] = relative_angle(r);
      by_query(first, T(k(first) * even + k(second) * odd));
      by_query(second, T(k(second) * even - k(first) * odd));
      by_key(first, T(q(first) * even - q(second) * odd));
      by_key(second, T(q(second) * even + q(first) * odd));
    }
    for (index_t d = 2 * pairs(); d < p.width; ++d) {
      by_query(d, k(d));
      by_key(d, q(d));
    }
  }

 private:
  struct feature_pair {
    index_t first, second;
  };
  struct unit {
    T even, odd;
  };
  index_t pairs() const { return owner.angles.pairs(); }
  feature_pair features(index_t r) const {
    if (owner.layout == rotary_layout::interleaved) return {2 * r, 2 * r + 1};
    return {r, pairs() + r};
  }
  /// Cosine and sine of the angle from the key to the query. The angles are tables of constants.
  unit relative_angle(index_t r) const {
    index_t const n = owner.angles.counted() ? i + p.offset_of(b) : i;
    table const queries(owner.angles.queries()), keys(owner.angles.keys());
    T const c = numbers.entry(queries, b, 0, n, r), s = numbers.entry(queries, b, 0, n, pairs() + r);
    if (owner.keys == rotary_keys::turned) return {c, s};
    T const ck = numbers.entry(keys, b, 0, j, r), sk = numbers.entry(keys, b, 0, j, pairs() + r);
    return {T(c * ck + s * sk), T(s * ck - c * sk)};
  }
};

}  // namespace attune::detail
