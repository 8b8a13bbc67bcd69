// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   I = the N largest weights,   s = sum_{i in I} alpha_i x_i,   d~ = sum_{i not in I} |alpha_i x_i - s|
//
// The distance between the selected context of a row and the keys that it does not select, and the bound of Theorem 1
// for a fixed set.
#pragma once

#include <algorithm>
#include <numeric>

#include <attune/analysis/numbers.hpp>

namespace attune::analysis {

/// Indices of the N largest weights in descending order; ties: the lower index. 0 <= N <= L.
template <numbers R, class T = number_of<R>>
std::vector<index_t> largest(R const& weights, index_t n) {
  detail::require_count("analysis::largest", "n", n, 0, count_of(weights));
  std::vector<index_t> order(std::size_t(count_of(weights)));
  std::iota(order.begin(), order.end(), index_t(0));
  T const* const w = std::ranges::data(weights);
  std::partial_sort(order.begin(), order.begin() + n, order.end(),
                    [w](index_t a, index_t b) { return w[a] > w[b] || (!(w[b] > w[a]) && a < b); });
  order.resize(std::size_t(n));
  return order;
}

/// y_i = alpha_i x_i, row by row.
template <numbers R, class T = number_of<R>>
std::vector<T> weighted(R const& alpha, points<T> const& x) {
  detail::require_length("analysis::weighted", "alpha", count_of(alpha), x.count());
  std::vector<T> y;
  for (index_t i = 0; i < x.count(); ++i)
    for (T const& value : x[i]) y.push_back(std::ranges::data(alpha)[i] * value);
  return y;
}

/// A set of selected keys, and the remaining keys.
template <class T>
struct selection {
  std::vector<index_t> chosen,     ///< the selected keys, in the given order
      rest;                        ///< all other keys, ascending
  std::vector<T> context;          ///< s
  std::vector<T> chosen_distance;  ///< |y_i - s|, in the order of chosen
  std::vector<T> rest_distance;    ///< the same for the rest
  T distance = T(0);               ///< d~ = the sum of rest_distance
};

/// Splits y_i = alpha_i x_i by a set of distinct keys. O(L d).
/// Throws attune::error if an index is out of range or occurs twice.
template <class T>
selection<T> select(points<T> const& y, std::vector<index_t> const& chosen) {
  selection<T> s;
  s.chosen = chosen;
  std::vector<char> in(std::size_t(y.count()), 0);
  s.context.assign(std::size_t(y.width()), T(0));
  for (index_t i : chosen) {
    detail::require_count("analysis::select", "chosen", i, 0, y.count() - 1);
    if (in[std::size_t(i)])
      throw error("analysis::select", "chosen", attune::detail::text("the key ", i, " twice"), "distinct keys");
    in[std::size_t(i)] = 1;
    for (std::size_t d = 0; d < s.context.size(); ++d) s.context[d] = s.context[d] + y[i][d];
  }
  for (index_t i : chosen) s.chosen_distance.push_back(analysis::distance(y[i], s.context));
  for (index_t i = 0; i < y.count(); ++i) {
    if (in[std::size_t(i)]) continue;
    s.rest.push_back(i);
    s.rest_distance.push_back(analysis::distance(y[i], s.context));
    s.distance = s.distance + s.rest_distance.back();
  }
  return s;
}

/// Theorem 1, first part, and its parts.
template <class T>
struct fixed_set_bound {
  selection<T> chosen;  ///< the N largest weights as a selection
  T mass,               ///< alpha-bar: the sum of alpha over the set
      rest_mass;        ///< the sum of alpha over the rest
  T farthest,           ///< d1 = max |x_i - x_j| over i outside, j inside
      longest;          ///< max |x_j| inside
  T printed;            ///< as printed, with 1 - alpha-bar: for weights that sum to 1
  T bound;              ///< with rest_mass instead: for any weights >= 0; the same as `printed` if they sum to 1
};

/// d~ of the N largest weights and its bound  rest d1 + longest (mass (L - N) - rest).
///     Needs alpha >= 0; 1 <= N < L. O(N L d).
/// The bound fails for sets other than the largest weights: it needs mass >= alpha_i outside.
/// Source: Limits of Normalization, Theorem 1 (1); the form for other sums is our own (alpha_i x_i - s =
/// alpha_i (x_i - xbar) - (mass - alpha_i) xbar, xbar the weighted mean of the set).
template <numbers R, class T = number_of<R>>
fixed_set_bound<T> bound_fixed_set(R const& alpha, points<T> const& x, index_t n) {
  detail::require_count("analysis::bound_fixed_set", "n", n, 1, x.count() - 1);
  std::vector<T> const y = weighted(alpha, x);
  fixed_set_bound<T> b{select(points<T>(y, x.width()), largest(alpha, n)), T(0), T(0), T(0), T(0), T(0), T(0)};
  T const* const a = std::ranges::data(alpha);
  for (index_t j : b.chosen.chosen) {
    b.mass = b.mass + a[j];
    b.longest = math::larger(b.longest, norm(x[j]));
  }
  for (index_t i : b.chosen.rest) {
    b.rest_mass = b.rest_mass + a[i];
    for (index_t j : b.chosen.chosen) b.farthest = math::larger(b.farthest, analysis::distance(x[i], x[j]));
  }
  T const outside = T(double(x.count() - n));
  auto const with = [&](T const& rest) { return T(rest * b.farthest + b.longest * (b.mass * outside - rest)); };
  b.printed = with(T(T(1) - b.mass));
  b.bound = with(b.rest_mass);
  return b;
}

}  // namespace attune::analysis
