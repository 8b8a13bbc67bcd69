// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   sort_stably(x, before)      equal elements keep their order
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace attune::detail {

/// Replaces std::stable_sort of a vector. In libstdc++ 12 that function calls one that newer clangs report as
/// deprecated, in the user's build.
template <class E, class Before>
void sort_stably(std::vector<E>& x, Before const& before) {
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (before(x[a], x[b])) return true;
    return !before(x[b], x[a]) && a < b;
  });
  std::vector<E> sorted;
  sorted.reserve(x.size());
  for (std::size_t const n : order) sorted.push_back(std::move(x[n]));
  x = std::move(sorted);
}

}  // namespace attune::detail
