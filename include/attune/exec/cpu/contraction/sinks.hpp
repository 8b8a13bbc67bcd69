// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   to.rows(field::k), to.sum_of(table), to.shared(field::bias)      where the gradients of one task accumulate
//
// Gradients of query sides accumulate in the tile's own scratch and are written at the end of the tile. Gradients of
// key sides accumulate in rows that belong to the task. Tables, the few numbers that many tasks share, accumulate in
// double. No two tasks write to the same place.
#pragma once

#include <array>
#include <vector>

#include <attune/exec/cpu/contraction/operands.hpp>
#include <attune/exec/gradients.hpp>

namespace attune::exec_cpu {

/// A task's own rows for the keys of one head, aligned and padded; null if the caller leaves them out.
template <class T>
struct key_rows {
  T* data = nullptr;
  index_t step = 0;
  T* at(index_t j) const { return data + j * step; }
};

/// The sums to which all rows of a task add: parameters, tables, and inputs that tasks share.
struct shared_sums {
  struct shared_input {
    field of;
    gradient_array<double>
        sums;  ///< (1, 1, queries of the task or 1, features); for all tasks: the extents of the input
  };
  std::vector<gradient_array<double>> parameters, tables;
  gradient_array<double> ground_value;
  std::vector<shared_input> inputs;
};

/// Where the gradients of one task, for one head, go.
template <class T>
struct gradient_sinks {
  attune::detail::gradient_views<T> const* to;  ///< query sides and given pairs: rows that only this task writes
  std::array<key_rows<T>, field_count> keys;
  shared_sums* sums;
  std::vector<double> distances;  ///< one per contraction and value of i + offset - j, for pulls that need them
  index_t first = 0;              ///< the first query of the task
  /// By field: whether the keys of the current block contain neither NaN nor infinity. Tiles share a block.
  struct {
    index_t first = -1, n = 0;
    bool finite = false;
  } checked[field_count] = {};

  /// Whether the caller requested the gradient by a query side or by given pairs.
  bool takes(field f) const { return !to->of(f).absent(); }
  key_rows<T> const& rows(field f) const { return keys[std::size_t(f)]; }
  /// The sums of an input with a row per query that tasks share; null if each task writes its own rows.
  gradient_array<double>* shared(field f) const {
    for (auto& x : sums->inputs)
      if (x.of == f) return &x.sums;
    return nullptr;
  }
  gradient_array<double>& sum_of(table const& x) const { return sums->tables[std::size_t(x.number())]; }
};

/// The sum of the first n lanes of a row of a tile.
template <class T>
T sum_of_lanes(T const* lanes, index_t n) {
  T sum(0);
  for (index_t l = 0; l < n; ++l) sum += lanes[l];
  return sum;
}

/// A tile of which `count` queries exist. Packed: contractor::packed. Grown: contraction_vjp::grown.
template <class Packed, class Grown>
struct vjp_tile {
  tile_place place;
  index_t count;
  Packed packed;
  Grown grown;
};

}  // namespace attune::exec_cpu
