// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// 16-bit numbers as floats: a batch on its way into a register, or rows in views with the extents of the whole, so that who reads
// them need not know.
#pragma once

#include <algorithm>
#include <cstring>

#include <attune/core/storage.hpp>

namespace attune::exec_cpu {

/// The numbers at `from`, one per lane, as what the batch computes in.
template <class B, class E>
ATTUNE_INLINE B load_widened(E const* from) {
  if constexpr (!storage_only<E>) {
    return B::load_unaligned(from);
  } else {
    auto const floats = attune::detail::widen_some<int(B::size)>(from);
    B to;
    static_assert(sizeof floats == sizeof to.data);
    std::memcpy(&to.data, &floats, sizeof floats);
    return to;
  }
}

/// Rows [first, first + n) of heads [head, last_head], dense at `to`, in their places of a view that has nothing else.
template <class S>
tensor<float const> widened(float* to, tensor<S const> const& x, index_t b, index_t head, index_t last_head, index_t first,
                            index_t n) {
  shape const e = x.extents();
  n = (std::min)(n, e.position - first);
  index_t const head_step = n * e.feature;
  float* row = to;
  for (index_t h = head; h <= last_head; ++h)
    for (index_t i = 0; i < n; ++i, row += e.feature) {
      S const* const from = x.row(b, h, first + i);
      if (x.steps().feature == 1)
        attune::detail::widen(from, row, e.feature);
      else
        for (index_t d = 0; d < e.feature; ++d) row[d] = float(from[d * x.steps().feature]);
    }
  return {to - head * head_step - first * e.feature, e, {0, head_step, e.feature, 1}};
}

/// Extents alone, for a tensor that nobody reads.
template <class S>
tensor<float const> unread(tensor<S const> const& x) {
  static constexpr float nothing = 0;
  return {&nothing, x.extents(), strides{}};
}

}  // namespace attune::exec_cpu
