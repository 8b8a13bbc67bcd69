// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   spikes = #{g > median + k MAD},   cv = std / mean
//
// Statistics of a run's gradient norms.
#pragma once

#include <algorithm>

#include <attune/analysis/numbers.hpp>

namespace attune::analysis {

/// Statistics of n numbers. Both divisors are available, because published tables do not say which one they use.
template <class T>
struct norm_statistics {
  T mean,                   ///< sum / n
      population_variance,  ///< divisor n
      sample_variance;      ///< divisor n - 1; 0 for one number
  T population_deviation,   ///< std: the square root of population_variance
      variation;            ///< std / mean (population)
  T median,                 ///< midpoint of the two middle numbers for even n
      absolute_deviation;   ///< MAD = median |g - median|, unscaled
};

/// Throws attune::error for no numbers. O(n log n).
template <numbers R, class T = number_of<R>>
T median_of(R const& values) {
  std::vector<T> v(std::ranges::begin(values), std::ranges::end(values));
  if (v.empty()) throw error("analysis::median_of", "values", "no numbers", "at least one");
  std::sort(v.begin(), v.end(), [](T const& a, T const& b) { return a < b; });
  std::size_t const half = v.size() / 2;
  return v.size() % 2 == 1 ? v[half] : T((v[half - 1] + v[half]) / T(2));
}

/// Source: Affine-Scaled Attention, Tables 4 and 5. Throws attune::error for no numbers.
template <numbers R, class T = number_of<R>>
norm_statistics<T> statistics_of(R const& values) {
  norm_statistics<T> s{};
  s.median = median_of(values);
  T const n = T(double(count_of(values)));
  s.mean = sum(values) / n;
  std::vector<T> away;
  T squares(0);
  for (T const& g : values) {
    away.push_back(math::abs(T(g - s.median)));
    squares = squares + (g - s.mean) * (g - s.mean);
  }
  s.population_variance = squares / n;
  s.sample_variance = count_of(values) > 1 ? T(squares / (n - T(1))) : T(0);
  s.population_deviation = math::sqrt(s.population_variance);
  s.variation = s.population_deviation / s.mean;
  s.absolute_deviation = median_of(away);
  return s;
}

/// median + k MAD
template <class T>
T spike_threshold(norm_statistics<T> const& s, T const& k) {
  return s.median + k * s.absolute_deviation;
}

/// The number of values above the threshold. Source: Affine-Scaled Attention, Table 5 (k = 6 and 9).
template <numbers R, class T = number_of<R>>
index_t spikes(R const& values, T const& k) {
  T const threshold = spike_threshold(statistics_of(values), k);
  index_t count = 0;
  for (T const& g : values)
    if (g > threshold) ++count;
  return count;
}

}  // namespace attune::analysis
