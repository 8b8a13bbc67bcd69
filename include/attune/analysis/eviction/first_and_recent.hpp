// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   keep = { j < first }  and  { j >= n - recent }
//
// StreamingLLM: the first tokens, where attention is dumped, and a window.
#pragma once

#include <algorithm>
#include <vector>

#include <attune/core/tensor.hpp>

namespace attune::eviction {

/// Indices of the keys that stay, ascending, of n in the order in which they came.
/// Guarantees: exactly min(n, first + recent) keys stay, whatever their weights. Softmax over them is ordinary softmax
///   over what is left (mask::sink_window shows the same keys without evicting any).
/// Cost:     O(first + recent).
/// Source:   StreamingLLM, Xiao et al. 2024, named by Scalar Sort.
inline std::vector<index_t> keep_first_and_recent(std::size_t n, std::size_t first, std::size_t recent) {
  std::vector<index_t> kept;
  std::size_t const head = (std::min)(n, first), tail = n - (std::min)(n - head, recent);
  for (std::size_t j = 0; j < head; ++j) kept.push_back(index_t(j));
  for (std::size_t j = tail; j < n; ++j) kept.push_back(index_t(j));
  return kept;
}

}  // namespace attune::eviction
