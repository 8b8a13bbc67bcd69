// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   to(b, h, n, d) = the sum of value(b', h', n', d) over the axes along which `to` is shared
//
// Sums of numbers of rows, in double and in an order that shapes alone decide: stretches of rows first, then stretches,
// heads and batch elements in order.
#pragma once

#include <attune/core/tensor.hpp>

namespace attune::exec_cuda {

/// An element of (B, H, N, W) numbers, as a task.
struct element_place {
  index_t b, h, n, d;
  ATTUNE_HD element_place(index_t task, shape const& e)
      : b(task / (e.feature * e.position * e.head)), h(task / (e.feature * e.position) % e.head),
        n(task / e.feature % e.position), d(task % e.feature) {}
};

/// 0.
struct no_value {
  ATTUNE_HD float operator()(index_t, index_t, index_t, index_t) const { return 0; }
};

/// to(b, h, n, d) = value(b, h, n, d)
template <class Value, class N>
struct store_program {
  Value value;
  tensor<N> to;
  ATTUNE_HD index_t tasks() const { return to.extents().size(); }
  ATTUNE_HD void operator()(index_t task) const {
    element_place const at(task, to.extents());
    to(at.b, at.h, at.n, at.d) = N(value(at.b, at.h, at.n, at.d));
  }
};
/// The sums over stretches of rows.
template <class Value>
struct stretch_sum_program {
  Value value;
  index_t positions, each;  ///< rows; rows of a stretch
  shape parts;
  double* to;
  ATTUNE_HD index_t tasks() const { return parts.size(); }
  ATTUNE_HD void operator()(index_t task) const {
    element_place const at(task, parts);
    index_t const first = at.n * each, last = first + each < positions ? first + each : positions;
    double sum = 0;
    for (index_t n = first; n < last; ++n) sum += double(value(at.b, at.h, n, at.d));
    to[task] = sum;
  }
};
/// The sums of stretches, heads and batch elements. The heads of `to` divide the heads of the parts.
template <class N>
struct fold_program {
  double const* from;
  shape parts;
  tensor<N> to;
  ATTUNE_HD index_t tasks() const { return to.extents().size(); }
  ATTUNE_HD void operator()(index_t task) const {
    shape const e = to.extents();
    element_place const at(task, e);
    index_t const batches = parts.batch / e.batch, heads = parts.head / e.head,
                  rows = parts.position == e.position ? 1 : parts.position;
    double sum = 0;
    for (index_t b = at.b * batches; b < (at.b + 1) * batches; ++b)
      for (index_t h = at.h * heads; h < (at.h + 1) * heads; ++h)
        for (index_t n = at.n * rows; n < (at.n + 1) * rows; ++n)
          sum += from[((b * parts.head + h) * parts.position + n) * parts.feature + at.d];
    to(at.b, at.h, at.n, at.d) = N(float(sum));
  }
};

/// Plans a reduction of values of extents `all` to the tensor `to`, whose axes have the same extents or are shared.
/// `memory` is taken at once; the result runs the programs.
template <class Run, class Arena, class Value, class N>
auto planned_reduction(Run const& run, Arena& memory, Value const& value, shape const& all, tensor<N> const& to) {
  constexpr index_t stretch = 256;
  index_t const each = to.extents().position == all.position ? 1 : stretch;
  shape const parts{all.batch, all.head, (all.position + each - 1) / each, all.feature};
  bool const direct = to.extents() == all;
  double* const at = direct ? nullptr : memory.template take<double>(parts.size());
  return [=] {
    if (direct) return run(store_program<Value, N>{value, to});
    run(stretch_sum_program<Value>{value, all.position, each, parts, at});
    run(fold_program<N>{at, parts, to});
  };
}

}  // namespace attune::exec_cuda
