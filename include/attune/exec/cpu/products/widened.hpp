// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// 16-bit numbers as floats: a batch that is loaded into a register, or rows in a view with the extents of the whole
// tensor. Code that reads such a view need not know about it.
#pragma once

#include <algorithm>
#include <cstring>

#include <attune/core/storage.hpp>

namespace attune::exec_cpu {

/// The numbers at `from`, one per lane, in the type that the batch computes in.
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

/// Rows [first, first + n) of heads [head, last_head], dense at `to`, as a view in which they keep their indices. The
/// view has no other rows. convert(b, h, i, to) converts a row to floats.
template <class View, class Convert>
tensor<float const> widened_by(Convert const& convert, float* to, View const& x, index_t b, index_t head,
                               index_t last_head, index_t first, index_t n) {
  shape const e = x.extents();
  n = (std::min)(n, e.position - first);
  index_t const head_step = n * e.feature;
  float* row = to;
  for (index_t h = head; h <= last_head; ++h)
    for (index_t i = 0; i < n; ++i, row += e.feature) convert(b, h, first + i, row);
  return {to - head * head_step - first * e.feature, e, {0, head_step, e.feature, 1}};
}
template <class S>
tensor<float const> widened(float* to, tensor<S const> const& x, index_t b, index_t head, index_t last_head,
                            index_t first, index_t n) {
  auto const convert = [&](index_t batch, index_t h, index_t i, float* row) {
    S const* const from = x.row(batch, h, i);
    index_t const width = x.extents().feature, step = x.steps().feature;
    if constexpr (storage_only<S>)
      if (step == 1) return attune::detail::widen(from, row, width);
    for (index_t d = 0; d < width; ++d) row[d] = float(from[d * step]);
  };
  return widened_by(convert, to, x, b, head, last_head, first, n);
}

/// For a view that converts its numbers itself.
template <class View>
  requires requires(View const& x) { x.is_converted_by_itself; }
tensor<float const> widened(float* to, View const& x, index_t b, index_t head, index_t last_head, index_t first,
                            index_t n) {
  return x.widened(to, b, head, last_head, first, n);
}

/// Extents only, for a tensor that is never read.
template <class View>
tensor<float const> unread(View const& x) {
  static constexpr float nothing = 0;
  return {&nothing, x.extents(), strides{}};
}

}  // namespace attune::exec_cpu
