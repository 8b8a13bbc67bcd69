// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   h_j = sum of w_ij over the queries since key j arrived;
//       keep the ceil(b/2) most recent keys and the floor(b/2) largest h_j of the rest
//
// H2O: eviction by the attention received so far.
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include <attune/analysis/eviction/geometric.hpp>

namespace attune::eviction {

/// Adds the weights of one query to every key: h_j += w_j. Heads that share a cache add to one h. Keys that arrive
/// later are new entries of 0. For whole calls use `statistics` with .columns.
/// Errors: throws attune::error if sizes differ or on a NaN; then nothing is added.
template <class T>
void receive(std::span<T> received, std::span<T const> weights) {
  if (weights.size() != received.size())
    throw error("eviction::receive", "weights", attune::detail::text(weights.size(), " numbers"),
                attune::detail::text(received.size(), ", one per key"));
  detail::require_numbers("eviction::receive", "weights", weights);
  for (std::size_t j = 0; j < weights.size(); ++j) received[j] = received[j] + weights[j];
}

/// Indices of the kept keys, ascending: at most `budget` of them. `received` is in order of arrival. Of equal keys, the
/// lower index is kept.
/// Guarantees: keeps exactly min(budget, n) keys, including the most recent ceil(budget / 2). No evicted key has
///   received more than any other kept key. There is no guarantee about the future: a key that no query has needed yet
///   is evicted. The attention that evicted keys received is not passed to other keys.
/// Errors:     throws attune::error on a NaN.
/// Cost:       O(n).
/// Source:     H2O, Zhang et al. 2023, named by Scalar Sort; the split of the budget is ours.
template <class T>
std::vector<index_t> keep_heavy_hitters(std::span<T const> received, std::size_t budget) {
  detail::require_numbers("eviction::keep_heavy_hitters", "received", received);
  std::size_t const n = received.size(), kept = (std::min)(budget, n), recent = (std::min)(n, budget - budget / 2);
  std::vector<index_t> order(n - recent);  // the other keys, by decreasing attention
  std::iota(order.begin(), order.end(), index_t{0});
  std::size_t const heavy = kept - recent;
  auto const heavier = [&](index_t a, index_t b) {
    T const &x = received[std::size_t(a)], &y = received[std::size_t(b)];
    return y < x || (x == y && a < b);
  };
  if (heavy < order.size()) std::nth_element(order.begin(), order.begin() + index_t(heavy), order.end(), heavier);
  order.resize(heavy);
  std::sort(order.begin(), order.end());
  for (std::size_t j = n - recent; j < n; ++j) order.push_back(index_t(j));
  return order;
}

}  // namespace attune::eviction
