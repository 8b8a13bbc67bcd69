// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   L_spread = 1/n sum_r (k_(r) - t_r)^2,   k_(r) the r-th smallest key,  t_r the r-th of n targets in [from, to]
//
// Pushes the keys of a head apart, towards even spacing. Alignment alone is smallest when all keys are equal.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include <attune/analysis/regularizer/checks.hpp>
#include <attune/core/stable_sort.hpp>

namespace attune::regularizer {

/// The interval where the keys should be.
template <class T>
struct range {
  T from,  ///< the lower end
      to;  ///< the upper end
};

/// The positions of the n targets in the range.
enum class targets {
  endpoints,  ///< from + (to - from) r / (n - 1), as printed (linspace); one key: from
  /// from + (to - from) (2 r + 1) / (2 n): the only targets for which the loss measures the distance to the uniform
  /// distribution on the range, and is smallest there.
  midpoints,
};

/// mean -+ deviations * population standard deviation of the keys. Its gradient treats the range as constant (ours: the
/// paper does not say).
/// Source: Scalar Sort, "Key spread": "adaptive per batch".
template <class T>
range<T> adaptive_range(std::span<T const> keys, T const& deviations = T(3)) {
  if (keys.empty()) throw error("regularizer::adaptive_range", "keys", "no element", "at least one");
  T const n = T(double(keys.size()));
  T sum(0), square(0);
  for (T const& k : keys) sum = sum + k;
  T const mean = sum / n;
  for (T const& k : keys) square = square + (k - mean) * (k - mean);
  T const reach = deviations * math::sqrt(T(square / n));
  return {mean - reach, mean + reach};
}

/// Target r of n, r = 0 ... n - 1.
template <class T>
T target(targets kind, range<T> const& over, std::size_t r, std::size_t n) {
  T const width = over.to - over.from;
  if (kind == targets::midpoints) return over.from + width * T(double(2 * r + 1)) / T(double(2 * n));
  return n < 2 ? over.from : T(over.from + width * T(double(r)) / T(double(n - 1)));
}

/// The spread loss of one sequence of keys. The gradient treats the permutation as constant; equal keys are ordered by
/// index.
/// Gradient: added to `d` (empty: none), times `by`: 2 by (k_(r) - t_r) / n to the r-th smallest key.
/// Errors:   throws attune::error if a key is not finite (no order exists), `d` has another size, or from > to.
/// Cost:     O(n log n), n indices of memory.
/// Source:   Scalar Sort, "Key spread (prevents collapse)".
template <class T>
T spread(std::span<T const> keys, range<T> const& over, targets kind = targets::endpoints, std::span<T> d = {},
         T const& by = T(1)) {
  char const* const name = "regularizer::spread";
  std::size_t const n = keys.size();
  if (n == 0) throw error(name, "keys", "no element", "at least one");
  if (!d.empty() && d.size() != n)
    throw error(name, "d", attune::detail::text(d.size(), " elements"), attune::detail::text(n, ", one per key"));
  if (!(over.from <= over.to) || !detail::is_finite(T(over.to - over.from)))
    throw error(name, "over", attune::detail::text("the range ", double(over.from), " to ", double(over.to)),
                "finite ends, the smaller one first");
  for (std::size_t j = 0; j < n; ++j)
    if (!detail::is_finite(keys[j]))
      throw error(name, "keys", attune::detail::text("the value ", double(keys[j]), " at ", j), "finite numbers");
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  attune::detail::sort_stably(order, [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
  T const count = T(double(n)), factor = T(2) * by / count;
  T loss(0);
  for (std::size_t r = 0; r < n; ++r) {
    T const e = keys[order[r]] - target(kind, over, r, n);
    loss = loss + e * e;
    if (!d.empty()) d[order[r]] = d[order[r]] + factor * e;
  }
  return loss / count;
}

/// The squared 2-Wasserstein distance between the keys, each with mass 1/n, and the uniform distribution on the range.
/// It is the loss with midpoints plus (to - from)^2 / (12 n^2), which no choice of keys removes. With endpoints the
/// loss is a different quantity, the distance to the n-point grid: it is 0 at the grid, where the distance to uniform
/// is not smallest.
template <class T>
T distance_to_uniform(std::span<T const> keys, range<T> const& over) {
  T const n = T(double(keys.size())), width = over.to - over.from;
  return spread(keys, over, targets::midpoints) + width * width / (T(12) * n * n);
}

}  // namespace attune::regularizer
