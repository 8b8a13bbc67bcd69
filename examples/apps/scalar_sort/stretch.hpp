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

/// Every step-th position from the first on.
struct every {
  index_t step = 1, first = 0;
};

struct stretch {
  apps::layer const* of;
  index_t first, count;  ///< positions

  index_t heads() const { return of->heads; }
  index_t width() const { return of->width; }
  /// q, k or v of these positions: (1, heads, count / step, width). step divides count.
  attune::tensor<float const> operator()(numbers const& x, every which = {}) const {
    index_t const head = of->length * of->width;
    return {x.data() + (first + which.first) * of->width,
            {1, of->heads, count / which.step, of->width},
            {of->heads * head, head, which.step * of->width, 1}};
  }
};

/// A scalar per head and position, (heads, count), for queries and for keys.
struct scalars {
  numbers q, k;
};

/// A view of such scalars as operators take them: (1, heads, count / step, 1).
template <class E>
attune::tensor<E> as_tensor(E* x, index_t heads, index_t count, every which = {}) {
  return {x + which.first, {1, heads, count / which.step, 1}, {heads * count, count, which.step, 1}};
}

}  // namespace scalar_sort
