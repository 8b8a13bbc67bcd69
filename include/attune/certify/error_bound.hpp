// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   bound = error_bound(op, inputs, precision)   |computed - exact| <= bound.out(b, h, i, d)   for every correct kernel
//
// A-priori error bounds of any operator, a user's policies included, from its own source (certify/row_bounds.hpp).
#pragma once

#include <attune/certify/row_bounds.hpp>
#include <attune/exec/reference/executor.hpp>

namespace attune::certify {

/// Bounds of every element of out, lse and ground weight, and their values in double.
/// Promise:    first-order worst case, continued where errors are not small: a kernel that evaluates the formulas of
///             the policies in the formats of `how`, sums in any order and from exact inputs, keeps within `bound`.
///             Tests measure the share used.
/// No promise: kernels that rewrite a formula into a worse conditioned one (|q|^2 - 2 qk + |k|^2 for a distance), that
///             round inputs or logits to formats below `how.arithmetic`, or that add the keys of a row one by one while
///             rescaling at each.
/// Errors:     attune::error names argument, value and expectation.
/// Complexity: about ten times that of reference<double>, memory O(B H Lq Dv).
template <class Op>
error_bounds error_bound(Op const& op, inputs<Op, any_tensor> const& in, precision const& how = {}) {
  error_bounds to;
  to.extents = attune::detail::checked_problem("error_bound", op, in, attune::detail::output_shape(in));
  detail::row_bounds<Op> row(op, in, to.extents, how);
  for (index_t b = 0; b < to.extents.batch; ++b)
    for (index_t h = 0; h < to.extents.heads; ++h)
      for (index_t i = 0; i < to.extents.queries; ++i) row(b, h, i, to);
  return to;
}

}  // namespace attune::certify
