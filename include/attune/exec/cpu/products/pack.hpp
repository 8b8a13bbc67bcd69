// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   packed[d][query] = x[query][d]
//
// The functions that pack do not depend on the operator. As calls they are compiled once, not into the tile of each
// operator.
#pragma once

#include <algorithm>

#include <attune/exec/cpu/products/tiling.hpp>

namespace attune::exec_cpu {

/// Queries [first, first + Lanes) of one head, feature-major; lanes past the end repeat the last query, lanes before
/// query `lowest` repeat that one.
template <int Lanes, class T>
ATTUNE_NOINLINE void pack_queries(T* packed, tensor<T const> const& x, index_t b, index_t h, index_t first,
                                  index_t lowest = 0) {
  index_t const width = x.extents().feature, queries = x.extents().position, step = x.steps().feature;
  for (index_t l = 0; l < Lanes; ++l) {
    T const* const from = x.row(b, h, std::clamp(first + l, lowest, queries - 1));
    for (index_t d = 0; d < width; ++d) packed[d * Lanes + l] = from[d * step];
  }
}

/// Pairs (query, key) for keys [j0, j0 + n), key-major.
template <int Lanes, class T>
ATTUNE_NOINLINE void pack_pairs(T* packed, tensor<T const> const& x, index_t b, index_t h, index_t first, index_t j0,
                                index_t n, index_t lowest = 0) {
  index_t const queries = x.extents().position, step = x.steps().feature;
  for (index_t l = 0; l < Lanes; ++l) {
    T const* const from = x.row(b, h, std::clamp(first + l, lowest, queries - 1)) + j0 * step;
    for (index_t j = 0; j < n; ++j) packed[j * Lanes + l] = from[j * step];
  }
}

/// Rows [j0, j0 + n) of one head with contiguous features: in place if they already are, otherwise copied.
template <class T>
struct row_block {
  T const* data;
  index_t step;

  row_block(T const* rows, index_t row_step) : data(rows), step(row_step) {}
  row_block(tensor<T const> const& x, index_t b, index_t h, index_t j0, index_t n, T* scratch)
      : data(x.row(b, h, j0)), step(x.steps().position) {
    index_t const width = x.extents().feature, feature = x.steps().feature;
    if (feature == 1) return;
    for (index_t j = 0; j < n; ++j)
      for (index_t d = 0; d < width; ++d) scratch[j * width + d] = x.row(b, h, j0 + j)[d * feature];
    data = scratch;
    step = width;
  }
};

}  // namespace attune::exec_cpu
