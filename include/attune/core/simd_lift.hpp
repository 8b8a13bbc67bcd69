// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   lane l of a row  <-  the parameter of query  min(query + l, queries - 1)
#pragma once

#include <attune/core/row.hpp>
#include <attune/core/simd_math.hpp>
#include <attune/core/xsimd.hpp>

namespace attune {

/// Numbers of type T, one next to the other: the CPU executor copies the tables that `bind` reads into this form once
/// per call (exec/materialized.hpp).
template <class T, class Arch>
class table_entries<xsimd::batch<T, Arch>> {
 public:
  table_entries(table const& x, row_place const& at, index_t i) {
    strides const s = x.view().steps();
    if constexpr (std::is_same_v<T, float>)
      data_ = x.view().floats();
    else
      data_ = x.view().doubles();
    if (x.first_entry() < 0 || data_ == nullptr || s.feature > 1)
      throw error("row::entries", "a table", "no entry in the policy's tables() with table_use::bind",
                  "listed(\"name\", &my_policy::name, table_width::any, table_use::bind)");
    data_ += at.batch * s.batch + at.head * s.head + i * s.position;
  }
  ATTUNE_INLINE xsimd::batch<T, Arch> operator[](index_t n) const { return xsimd::batch<T, Arch>(data_[n]); }

 private:
  T const* data_;
};

template <class T, class Arch>
struct lift<xsimd::batch<T, Arch>> {
  using batch = xsimd::batch<T, Arch>;
  static batch constant(double x) { return batch(T(x)); }
  table_entries<batch> entries(table const& x, row_place const& at, index_t i) const { return {x, at, i}; }
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
