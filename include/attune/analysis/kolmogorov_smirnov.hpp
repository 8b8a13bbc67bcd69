// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   D = sup |F_a - F_b|,   p = P(D or more from one distribution) ~ 1 - K(sqrt(nm / (n + m)) D)
//
// Whether two samples come from the same distribution. The critical N of a row is defined by this test.
#pragma once

#include <algorithm>
#include <optional>

#include <boost/math/distributions/kolmogorov_smirnov.hpp>

#include <attune/analysis/numbers.hpp>

namespace attune::analysis {

/// The largest distance between the two empirical distribution functions; a tie moves both at once. O(n log n).
/// Throws attune::error for an empty sample.
template <numbers A, numbers B, class T = number_of<A>>
T kolmogorov_smirnov(A const& a, B const& b) {
  detail::require_count("analysis::kolmogorov_smirnov", "the size of a", count_of(a), 1,
                        (std::numeric_limits<index_t>::max)());
  detail::require_count("analysis::kolmogorov_smirnov", "the size of b", count_of(b), 1,
                        (std::numeric_limits<index_t>::max)());
  std::vector<T> x(std::ranges::begin(a), std::ranges::end(a)), y(std::ranges::begin(b), std::ranges::end(b));
  std::sort(x.begin(), x.end());
  std::sort(y.begin(), y.end());
  index_t i = 0, j = 0, n = count_of(x), m = count_of(y), largest = 0;  // |i m - j n| is exact
  while (i < n && j < m) {
    T const at = (std::min)(x[std::size_t(i)], y[std::size_t(j)]);
    while (i < n && !(at < x[std::size_t(i)])) ++i;
    while (j < m && !(at < y[std::size_t(j)])) ++j;
    largest = (std::max)(largest, i * m > j * n ? i * m - j * n : j * n - i * m);
  }
  return T(double(largest)) / (T(double(n)) * T(double(m)));
}

/// The asymptotic p-value of D between samples of n and m numbers (Kolmogorov's distribution, Boost.Math). Conservative
/// for small samples, whose exact distribution is discrete. T: a scalar that Boost.Math supports.
/// Throws attune::error unless n, m >= 1.
template <class T>
T kolmogorov_smirnov_p(T const& d, index_t n, index_t m) {
  detail::require_count("analysis::kolmogorov_smirnov_p", "n", n, 1, (std::numeric_limits<index_t>::max)());
  detail::require_count("analysis::kolmogorov_smirnov_p", "m", m, 1, (std::numeric_limits<index_t>::max)());
  T const effective = T(double(n)) * T(double(m)) / T(double(n + m));
  if (!(d > T(0))) return T(1);
  return boost::math::cdf(boost::math::complement(boost::math::kolmogorov_smirnov_distribution<T>(effective), d));
}

/// The critical D for a level: sqrt(-log(level / 2) / 2) sqrt((n + m) / (n m)) (Dvoretzky, Kiefer, Wolfowitz). Samples
/// with a larger D differ. Throws attune::error unless 0 < level < 2 and n, m >= 1.
template <class T>
T kolmogorov_smirnov_critical(T const& level, index_t n, index_t m) {
  detail::require_positive("analysis::kolmogorov_smirnov_critical", "level", level);
  detail::require_positive("analysis::kolmogorov_smirnov_critical", "2 - level", T(T(2) - level));
  detail::require_count("analysis::kolmogorov_smirnov_critical", "n", n, 1, (std::numeric_limits<index_t>::max)());
  detail::require_count("analysis::kolmogorov_smirnov_critical", "m", m, 1, (std::numeric_limits<index_t>::max)());
  return math::sqrt(T(-math::log(T(level / T(2))) / T(2))) *
         math::sqrt(T((T(double(n)) + T(double(m))) / (T(double(n)) * T(double(m)))));
}

/// The critical N: the first of `sizes` at which the two samples cannot be distinguished, p >= level. samples(N) ->
/// std::pair of arrays (over heads: the distance, and its expectation by Theorem 1). Nothing if they differ at every
/// size.
/// Source: Limits of Normalization, section 3.1 (level 0.01, 144 heads).
template <class Samples, class T = double>
std::optional<index_t> critical_count(std::vector<index_t> const& sizes, Samples const& samples,
                                      T const& level = T(0.01)) {
  for (index_t const n : sizes) {
    auto const [a, b] = samples(n);
    if (kolmogorov_smirnov_p(T(kolmogorov_smirnov(a, b)), count_of(a), count_of(b)) >= level) return n;
  }
  return std::nullopt;
}

}  // namespace attune::analysis
