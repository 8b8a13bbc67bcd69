// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   bin b = floor((k - origin) / width):   M = sum m,   k_b = sum m k / M,   v_b = sum m v / M,  score of k_b  +  log M
//
// Compression by density: the keys of one bin become one key. The paper omits the log M: one key that replaces M keys
// needs the mass of M.
#pragma once

#include <cmath>
#include <map>
#include <span>
#include <vector>

#include <attune/analysis/eviction/geometric.hpp>
#include <attune/core/math.hpp>

namespace attune::eviction {

/// Keys that each replace `multiplicity` others. Add log_multiplicity to their scores. values: rows of `width` numbers.
template <class T>
struct compressed_keys {
  std::vector<T> keys,  ///< mean key of each bin, bins ascending
      values,           ///< mean values, row-major: one row of `width` numbers per key
      multiplicity;     ///< how many input keys each key replaces
  index_t width = 0;    ///< numbers per value row
  T log_multiplicity(std::size_t n) const { return math::log(multiplicity[n]); }  ///< add it to the score of key n
};

/// One key per non-empty bin, bins ascending. `multiplicity` belongs to the input keys (empty: 1 each), so that
/// compressed keys can be compressed again: the sums are the same as in one step, up to rounding.
/// Guarantees: the total multiplicity is exact while it is below 2^53 (2^24 in float). The mean value and the mean key
///   of every bin are kept, up to rounding. With the multiplicities in the scores, attention changes by the second
///   order of the spread inside a bin: for the Gaussian kernel a score moves by at most (2 d + width) width / tau at
///   distance d from the query. Without them, one key that replaces M keys loses log M of its logit, at any bin width.
/// Numerics:   the number of a bin is computed in double. Errors: throws attune::error if sizes do not fit, a bin width
///             is not > 0 and finite, a key is not finite, or a multiplicity is not > 0.
/// Cost:       O(n (log bins + Dv)).
/// Source:     Scalar Sort, "Density-based compression", corrected.
template <class T>
compressed_keys<T> compress(std::span<T const> keys, std::span<T const> values, T const& bin_width,
                            T const& origin = T(0), std::span<T const> multiplicity = {}) {
  char const* const name = "eviction::compress";
  std::size_t const n = keys.size();
  if (n == 0 ? !values.empty() : values.size() % n != 0)
    throw error(name, "values", attune::detail::text(values.size(), " numbers"),
                attune::detail::text("a multiple of ", n, ", the number of keys"));
  if (!multiplicity.empty() && multiplicity.size() != n)
    throw error(name, "multiplicity", attune::detail::text(multiplicity.size(), " numbers"),
                attune::detail::text(n, ", one per key"));
  if (!(bin_width > T(0)) || !(bin_width - bin_width == T(0)))
    throw error(name, "bin_width", attune::detail::text("the value ", double(bin_width)), "a finite number > 0");
  for (std::size_t j = 0; j < n; ++j) {
    if (!(keys[j] - keys[j] == T(0)))
      throw error(name, "keys", attune::detail::text("the value ", double(keys[j]), " at ", j), "finite numbers");
    if (!multiplicity.empty() && !(multiplicity[j] > T(0)))
      throw error(name, "multiplicity", attune::detail::text("the value ", double(multiplicity[j]), " at ", j),
                  "numbers > 0");
  }
  auto const number = [&](T const& k) { return std::floor(double(T((k - origin) / bin_width))); };
  std::map<double, std::size_t> bins;  // by bin number, which may exceed every integer type
  for (T const& k : keys) bins.emplace(number(k), 0);
  compressed_keys<T> to;
  to.width = n == 0 ? 0 : index_t(values.size() / n);
  std::size_t const width = std::size_t(to.width);
  std::size_t next = 0;
  std::vector<T> first(bins.size());  // sums of keys are relative to a key of the bin: no cancellation far from 0
  std::vector<bool> begun(bins.size(), false);
  for (auto& bin : bins) bin.second = next++;
  to.keys.assign(bins.size(), T(0));
  to.multiplicity.assign(bins.size(), T(0));
  to.values.assign(bins.size() * width, T(0));
  for (std::size_t j = 0; j < n; ++j) {
    std::size_t const b = bins.at(number(keys[j]));
    T const m = multiplicity.empty() ? T(1) : multiplicity[j];
    if (!begun[b]) {
      begun[b] = true;
      first[b] = keys[j];
    }
    to.multiplicity[b] = to.multiplicity[b] + m;
    to.keys[b] = to.keys[b] + m * (keys[j] - first[b]);
    for (std::size_t d = 0; d < width; ++d)
      to.values[b * width + d] = to.values[b * width + d] + m * values[j * width + d];
  }
  for (std::size_t b = 0; b < bins.size(); ++b) {
    to.keys[b] = first[b] + to.keys[b] / to.multiplicity[b];
    for (std::size_t d = 0; d < width; ++d) to.values[b * width + d] = to.values[b * width + d] / to.multiplicity[b];
  }
  return to;
}

}  // namespace attune::eviction
