// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   h_j = sum over the queries since key j came of w_ij;
//       keep the ceil(b/2) most recent keys and the floor(b/2) largest h_j of the rest
//
// H2O: eviction by attention received so far.
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include <attune/analysis/eviction/geometric.hpp>

namespace attune::eviction {

/// Adds what one query gives to every key: h_j += w_j. Heads that share a cache add theirs to one h, and keys that came
/// later are new entries of 0. Whole calls: `statistics` with .columns.
/// Errors: throws attune::error on sizes that differ or a NaN; nothing is added then.
template <class T>
void receive(std::span<T> received, std::span<T const> weights) {
  if (weights.size() != received.size())
    throw error("eviction::receive", "weights", attune::detail::text(weights.size(), " numbers"),
                attune::detail::text(received.size(), ", one per key"));
  detail::require_numbers("eviction::receive", "weights", weights);
  for (std::size_t j = 0; j < weights.size(); ++j) received[j] = received[j] + weights[j];
}

/// Indices of the keys that stay, ascending: at most `budget` of them. `received` in the order in which the keys came;
/// of equal ones the lower index stays.
/// Guarantees: exactly min(budget, n) keys stay; the most recent ceil(budget / 2) are among them, and no evicted key
///   has received more than one of the others that stay. Nothing about the future: a key that nobody has needed yet
///   goes. What evicted keys received is not given to others.
/// Errors:     throws attune::error on a NaN.
/// Cost:       O(n).
/// Source:     H2O, Zhang et al. 2023, named by Scalar Sort; the split of the budget is ours.
template <class T>
std::vector<index_t> keep_heavy_hitters(std::span<T const> received, std::size_t budget) {
  detail::require_numbers("eviction::keep_heavy_hitters", "received", received);
  std::size_t const n = received.size(), kept = (std::min)(budget, n), recent = (std::min)(n, budget - budget / 2);
  std::vector<index_t> order(n - recent);  // of the rest, heavy ones first
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
