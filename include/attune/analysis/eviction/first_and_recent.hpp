// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   keep = { j < first }  and  { j >= n - recent }
//
// StreamingLLM: the first tokens, which receive surplus attention, and a window.
#pragma once

#include <algorithm>
#include <vector>

#include <attune/core/tensor.hpp>

namespace attune::eviction {

/// Indices of the kept keys, ascending, among n keys in order of arrival.
/// Guarantees: keeps exactly min(n, first + recent) keys, whatever their weights. Softmax over them is ordinary softmax
///   over the kept keys (mask::sink_window shows the same keys without evicting any).
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
