// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   N_s = #{i in I : |alpha_i x_i - s| <= r},  1 - sum xi_i / (r N)  <=  E[N_s] / N  <=
//       mean exp(-((mu_i - r)_+)^2 / (2 M^2 A_i))
//
// The number of selected keys that stay within a ball around the context of the row, and Theorem 2.
#pragma once

#include <attune/analysis/limits/selection.hpp>

namespace attune::analysis {

/// Whether a key on the sphere with radius r counts.
enum class ball { closed, open };

/// The smallest distance of a key that was not selected: the radius of the largest open ball without such a key. +inf
/// if all keys are selected.
template <class T>
T separation_radius(selection<T> const& s) {
  T r = math::infinity<T>();
  for (T const& d : s.rest_distance) r = math::smaller(r, d);
  return r;
}

/// N_s. With r = separation_radius, count the open ball: the closed ball contains a key that was not selected.
template <class T>
index_t separable(selection<T> const& s, T const& radius, ball kind = ball::closed) {
  index_t inside = 0;
  for (T const& d : s.chosen_distance)
    if (d < radius || (kind == ball::closed && !(radius < d))) ++inside;
  return inside;
}

/// The smallest distance between two keys: the delta of Assumption 2. +inf for fewer than two keys. O(L^2 d).
template <class T>
T least_distance(points<T> const& x) {
  T least = math::infinity<T>();
  for (index_t i = 0; i < x.count(); ++i)
    for (index_t j = 0; j < i; ++j) least = math::smaller(least, squared_distance(x[i], x[j]));
  return math::sqrt(least);
}

/// The assumptions about keys on a sphere: norm M, no two closer than delta.
template <class T>
struct sphere {
  T radius,            ///< M: the norm of every key
      least_distance;  ///< delta: no two keys are closer
  index_t width;       ///< d
};

/// Bounds of N_s / N, the share of the selected keys that are separable. Made by bound_separability.
template <class T>
struct separability_bounds {
  std::vector<T> spread;  ///< xi_i of the selected keys: always |alpha_i x_i - s| <= xi_i
  T lower;                ///< 1 - sum xi / (r N): Markov; often negative
  T upper;                ///< of E[N_s] / N, for independent uniform keys
  T printed;              ///< the upper bound of Theorem 2: invalid, because xi bounds the distance from above
};

/// Theorem 2 for the weights of the selected keys (in any order), and r > 0. O(N^2).
/// xi_i^2 = M^2 A_i + (M^2 - delta^2 / 2) (S_i^2 - A_i), sums over the other selected keys (ordered pairs): S = sum
/// alpha, A = sum alpha^2.
/// Upper: X_i = |sum_{j != i} alpha_j x_j| changes by at most 2 M alpha_j with x_j (McDiarmid, lower tail), and
/// E X >= (E X^2)^(3/2) / (E X^4)^(1/2) = M sqrt(A) / sqrt(1 + 2 B / (d A^2)) =: mu with B = A^2 - sum alpha^4.
/// Throws attune::error unless r > 0. Needs alpha >= 0.
/// Source: Limits of Normalization, Theorem 2 and (12); the upper bound is our own.
template <numbers R, class T = number_of<R>>
separability_bounds<T> bound_separability(R const& chosen_weights, sphere<T> const& keys, T const& r) {
  detail::require_positive("analysis::bound_separability", "r", r);
  detail::require_count("analysis::bound_separability", "chosen_weights", count_of(chosen_weights), 1,
                        (std::numeric_limits<index_t>::max)());
  T const zero(0), one(1), two(2), n = T(double(count_of(chosen_weights)));
  T const m2 = keys.radius * keys.radius, d = T(double(keys.width));
  separability_bounds<T> b{{}, zero, zero, zero};
  T total(0);
  for (index_t i = 0; i < count_of(chosen_weights); ++i) {
    T s1(0), s2(0), s4(0);  // O(N^2) additions instead of differences: one key may have all the weight
    for (index_t j = 0; j < count_of(chosen_weights); ++j) {
      if (j == i) continue;
      T const w = std::ranges::data(chosen_weights)[j], square = w * w;
      s1 = s1 + w;
      s2 = s2 + square;
      s4 = s4 + square * square;
    }
    T const cosine = m2 - keys.least_distance * keys.least_distance / two;
    T const xi = math::sqrt(math::larger(T(m2 * s2 + cosine * (s1 * s1 - s2)), zero));
    b.spread.push_back(xi);
    total = total + xi;
    b.printed = b.printed + math::exp(T(-((r - xi) * (r - xi) / (T(16) * m2))));
    if (s2 == zero) {  // only one key: the distance is 0
      b.upper = b.upper + one;
      continue;
    }
    T const pairs = math::larger(T(s2 * s2 - s4), zero);
    T const mean = keys.radius * math::sqrt(s2) / math::sqrt(T(one + two * pairs / (d * s2 * s2)));
    T const short_of = math::larger(T(mean - r), zero);
    b.upper = b.upper + math::exp(T(-(short_of * short_of / (two * m2 * s2))));
  }
  b.lower = one - total / (r * n);
  b.upper = b.upper / n;
  b.printed = b.printed / n;
  return b;
}

}  // namespace attune::analysis
