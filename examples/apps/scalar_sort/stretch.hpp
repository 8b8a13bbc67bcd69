// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A stretch of the text as all heads of a layer see it: a context of its own.
#pragma once

#include <vector>

#include <attune/core/tensor.hpp>

#include "shared/layer.hpp"

namespace scalar_sort {

using attune::index_t;
using numbers = std::vector<float>;

struct stretch {
  apps::layer const* of;
  index_t first, count;  ///< positions

  index_t heads() const { return of->heads; }
  index_t width() const { return of->width; }
  /// q, k or v of these positions: (1, heads, count, width).
  attune::tensor<float const> operator()(numbers const& x) const {
    index_t const head = of->length * of->width;
    return {x.data() + first * of->width, {1, of->heads, count, of->width}, {of->heads * head, head, of->width, 1}};
  }
};

/// A scalar per head and position, (heads, count), for queries and for keys.
struct scalars {
  numbers q, k;
};

/// A view of such scalars as operators take them: (1, heads, count, 1).
template <class E>
attune::tensor<E> as_tensor(E* x, index_t heads, index_t count) {
  return {x, {1, heads, count, 1}};
}

}  // namespace scalar_sort
