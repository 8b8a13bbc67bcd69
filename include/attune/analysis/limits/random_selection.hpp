// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   E = mean over all sets I of N keys of  sum_{i not in I} |y_i - sum_{j in I} y_j|,   y_i = alpha_i x_i
//
// The expected distance for a set drawn at random: exact, bounded, and for long rows.
#pragma once

#include <attune/analysis/limits/selection.hpp>

namespace attune::analysis {

/// m <= E <= upper,  m <= E <= m + gap  (gap may be infinite).
template <class T>
struct random_set_bounds {
  T lower;    ///< m = (L - N)/L sum |(1 + rho) y_i - rho ybar|, rho = N/(L - 1), ybar = sum y: the corrected main term
  T upper;    ///< (L - N)/L sum sqrt(|.|^2 + V_i), V_i = N (1 - rho) S_i^2: always finite
  T gap;      ///< the printed bound of epsilon; infinite if a conditional mean is 0
  T printed;  ///< main term as printed, (alpha_i + rho) x_i - ybar: no lower bound nor, with gap, an upper bound
};

/// Theorem 1, second part. 1 <= N < L, L >= 2. O(L d).
/// If key i is not drawn, s has mean rho (ybar - y_i) and variance V_i (finite population: S_i^2 is the sample variance
/// of the other L - 1, divisor L - 2). Jensen then gives m, and E|Y| <= sqrt(|EY|^2 + V) <= |EY| + V / (2 |EY|) gives
/// the upper bounds.
/// Source: Limits of Normalization, Theorem 1 (2); the main term is corrected, the upper bound is our own.
template <numbers R, class T = number_of<R>>
random_set_bounds<T> bound_random_set(R const& alpha, points<T> const& x, index_t n) {
  index_t const length = x.count(), width = x.width();
  detail::require_count("analysis::bound_random_set", "n", n, 1, length - 1);
  std::vector<T> const data = weighted(alpha, x);
  points<T> const y(data, width);
  T const big = T(double(length)), rho = T(double(n)) / T(double(length - 1)), kept = T(double(length - n)) / big;
  T const zero(0), one(1), two(2);
  std::vector<T> total(std::size_t(width), zero), mean(total), wanted(total), printed(total);
  std::vector<T> before{zero}, after{zero};  // sums of |y_j|^2 on either side of i, so that nothing cancels
  for (index_t i = 0; i < length; ++i) {
    for (std::size_t d = 0; d < total.size(); ++d) total[d] = total[d] + y[i][d];
    before.push_back(before.back() + dot(y[i], y[i]));
    index_t const back = length - 1 - i;
    after.push_back(after.back() + dot(y[back], y[back]));
  }
  for (std::size_t d = 0; d < total.size(); ++d) mean[d] = total[d] / big;
  T deviations(0);
  for (index_t i = 0; i < length; ++i) deviations = deviations + squared_distance(y[i], mean);
  random_set_bounds<T> b{zero, zero, zero, zero};
  for (index_t i = 0; i < length; ++i) {
    for (std::size_t d = 0; d < total.size(); ++d) {
      wanted[d] = (one + rho) * y[i][d] - rho * total[d];
      printed[d] = (std::ranges::data(alpha)[i] + rho) * x[i][d] - total[d];
    }
    T const away = norm(wanted);
    // The deviations of the others from their own mean. For an outlier this cancels, but then it is small compared with
    // `|wanted|^2`.
    T spread = deviations - big / T(double(length - 1)) * squared_distance(y[i], mean);
    spread = length > 2 ? T(math::larger(spread, zero) / T(double(length - 2))) : zero;
    T const others = before[std::size_t(i)] + after[std::size_t(length - 1 - i)];
    b.lower = b.lower + away;
    b.printed = b.printed + norm(printed);
    b.upper = b.upper + math::sqrt(T(away * away + T(double(n)) * (one - rho) * spread));
    b.gap = b.gap + (away > zero ? T(rho * others / away) : (others > zero ? math::infinity<T>() : zero));
  }
  b.lower = kept * b.lower;
  b.upper = kept * b.upper;
  b.printed = kept * b.printed;
  b.gap = kept / two * b.gap;
  return b;
}

/// E itself, over all C(L, N) sets: for L up to about 20. O(C(L, N) L d).
template <numbers R, class T = number_of<R>>
T expected_distance(R const& alpha, points<T> const& x, index_t n) {
  index_t const length = x.count();
  detail::require_count("analysis::expected_distance", "n", n, 1, length - 1);
  std::vector<T> const data = weighted(alpha, x);
  points<T> const y(data, x.width());
  auto set = std::vector<index_t>(std::size_t(n));
  std::iota(set.begin(), set.end(), index_t(0));
  T total(0);
  double sets = 0;
  for (;;) {
    total = total + select(y, set).distance;
    ++sets;
    index_t at = n - 1;
    while (at >= 0 && set[std::size_t(at)] == length - n + at) --at;
    if (at < 0) break;
    ++set[std::size_t(at)];
    for (index_t k = at + 1; k < n; ++k) set[std::size_t(k)] = set[std::size_t(k - 1)] + 1;
  }
  return total / T(sets);
}

/// E for N fixed and L large, in terms of the cloud y. E lies between the two bounds, and equals the second where |y_i
/// - s| concentrates (wide, isotropic keys).
template <class T>
struct long_row_distance {
  T lower;    ///< sum |y_i - N ymean|: exact for identical keys, |N - 1| |x|
  T upper;    ///< sum sqrt(|y_i - N ymean|^2 + N S^2): sqrt(N + 1) sum |y_i| for isotropic keys of equal norm
  T printed;  ///< sum |y_i| of Corollary 2 (i): wrong, because the context s is of the same order as y_i
};

/// A corrected form of Corollary 2: s is a sum of N draws from the cloud, with mean N ymean and variance N S^2. O(L d).
/// (ii), N -> L: E -> 0 because the L - N terms vanish, not because keys come closer. Source: our own.
template <numbers R, class T = number_of<R>>
long_row_distance<T> distance_of_long_rows(R const& alpha, points<T> const& x, index_t n) {
  detail::require_count("analysis::distance_of_long_rows", "n", n, 1, x.count());
  std::vector<T> const data = weighted(alpha, x);
  points<T> const y(data, x.width());
  T const length = T(double(x.count())), draws = T(double(n));
  std::vector<T> mean(std::size_t(x.width()), T(0)), shift(mean);
  for (index_t i = 0; i < y.count(); ++i)
    for (std::size_t d = 0; d < mean.size(); ++d) mean[d] = mean[d] + y[i][d] / length;
  T variance(0);
  for (index_t i = 0; i < y.count(); ++i) variance = variance + squared_distance(y[i], mean) / length;
  for (std::size_t d = 0; d < mean.size(); ++d) shift[d] = draws * mean[d];
  long_row_distance<T> r{T(0), T(0), T(0)};
  for (index_t i = 0; i < y.count(); ++i) {
    T const away = squared_distance(y[i], shift);
    r.lower = r.lower + math::sqrt(away);
    r.upper = r.upper + math::sqrt(T(away + draws * variance));
    r.printed = r.printed + norm(y[i]);
  }
  return r;
}

}  // namespace attune::analysis
