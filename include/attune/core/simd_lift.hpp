// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   lane l of a row  <-  the parameter of query  min(query + l, queries - 1)
#pragma once

#include <attune/core/row.hpp>
#include <attune/core/simd_math.hpp>
#include <attune/core/xsimd.hpp>

namespace attune {

template <class T, class Arch>
struct lift<xsimd::batch<T, Arch>> {
  using batch = xsimd::batch<T, Arch>;
  static batch constant(double x) { return batch(T(x)); }
  batch value(parameter const& p, row_place const& at) const {
    if (p.shared_by_queries()) return batch(T(p.at(at.batch, at.head, 0)));
    alignas(64) T lanes[batch::size];
    for (index_t l = 0; l < index_t(batch::size); ++l) {
      index_t const i = at.query + l < at.queries ? at.query + l : at.queries - 1;
      lanes[l] = T(p.at(at.batch, at.head, i));
    }
    return batch::load_aligned(lanes);
  }
};

}  // namespace attune
