// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The gradients of the reference, row by row (row_pullback.hpp).
#pragma once

#include <attune/exec/reference/executor.hpp>
#include <attune/exec/reference/row_pullback.hpp>

namespace attune {

namespace detail {

struct every_head {
  bool operator()(index_t) const { return true; }
};

/// The gradients of the heads for which `runs` is true. Cotangents are views like the inputs, or a fold's.
template <class T, class Op, class View, class CotangentView, class Runs = every_head>
dense_gradients<T> dense_vjp(Op const& original, inputs<Op, View> const& in, problem_shape const& p,
                             cotangents<Op, CotangentView> const& d, lift<T> const& numbers = {},
                             Runs const& runs = {}) {
  check_cotangents("vjp", d, p);
  Op op = numbered(original);
  if constexpr (has_entries<Op>) number_entries(listed_tables(op));
  dense_gradients<T> to = blank_gradients<T>(op, in);
  row_pullback<T, Op, View, cotangents<Op, CotangentView>> pull(op, in, p, d, numbers, to);
  for (index_t b = 0; b < p.batch; ++b)
    for (index_t h = 0; h < p.heads; ++h)
      for (index_t i = 0; i < p.queries && runs(h); ++i) pull(b, h, i);
  pull_projections(listed_parameters(op), to);
  return to;
}

}  // namespace detail

}  // namespace attune
