// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   bound = error_bound(op, inputs, precision)   |computed - exact| <= bound.out(b, h, i, d)   for every correct kernel
//
// A-priori error bounds of any operator from its own source, including your own policies (certify/row_bounds.hpp).
#pragma once

#include <attune/certify/row_bounds.hpp>
#include <attune/exec/reference/executor.hpp>

namespace attune::certify {

/// Bounds of every element of out, lse and ground weight, and their values in double.
/// Guarantee:  first-order worst case, extended to errors that are not small. It covers kernels that evaluate the
///             formulas of the policies in the formats of `how`, from exact inputs, with sums in any order. Such a
///             kernel stays within `bound`. Tests measure the share that is used.
/// Excluded:   kernels that rewrite a formula into a worse conditioned one (|q|^2 - 2 qk + |k|^2 for a distance);
///             kernels that round inputs or logits to formats below `how.arithmetic`; kernels that add the keys of a
///             row one by one and rescale at each.
/// Errors:     attune::error names argument, value and expectation.
/// Complexity: about ten times reference<double>, memory O(B H Lq Dv).
template <class Op>
error_bounds error_bound(Op const& op, inputs<Op, any_tensor> const& in, precision const& how = {}) {
  error_bounds to;
  to.extents = attune::detail::checked_inputs("error_bound", op, in);
  std::size_t const rows = std::size_t(to.extents.batch * to.extents.heads * to.extents.queries);
  to.out.reserve(rows * std::size_t(to.extents.value_width));
  if constexpr (Op::has_lse) to.lse.reserve(rows);
  detail::row_bounds<Op> row(op, in, to.extents, how);
  for (index_t b = 0; b < to.extents.batch; ++b)
    for (index_t h = 0; h < to.extents.heads; ++h)
      for (index_t i = 0; i < to.extents.queries; ++i) row(b, h, i, to);
  return to;
}

}  // namespace attune::certify
