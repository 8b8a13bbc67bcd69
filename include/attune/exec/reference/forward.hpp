// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   result = forward(reference<T>{}, op, inputs):   scores, logits, weights, w0, lse and out of every row
#pragma once

#include <attune/exec/reference/composite.hpp>
#include <attune/exec/reference/dense.hpp>

namespace attune {

/// Evaluates an operator, a fold or a mixture densely for an output of extents (B, H, Lq, Dv). Heads of a fold hold
/// `out` alone.
/// Errors:     attune::error names the argument, the value and the expectation.
/// Complexity: O(B H Lq Lk (D + Dv)) operations of T, memory O(B H Lq Lk).
template <class T, class Op>
dense_result<T> forward(reference<T>, Op const& op, inputs<Op, any_tensor> const& in, shape const& extents) {
  if constexpr (Fold<Op>)
    return detail::dense_forward_of_fold<T>(op, in, extents);
  else if constexpr (detail::is_mixture<Op>)
    return detail::dense_forward_of_mixture<T>(op, in, extents);
  else
    return detail::dense_forward<T>(op, in, detail::checked_problem("forward", op, in, extents));
}

/// The same; the inputs determine the extents.
template <class T, class Op>
dense_result<T> forward(reference<T> exec, Op const& op, inputs<Op, any_tensor> const& in) {
  if constexpr (Fold<Op>)
    return forward(exec, op, in, detail::folded_shape("forward", in));
  else
    return forward(exec, op, in, detail::output_shape(in));
}

/// One row only, with all its intermediates in row 0 of the result. For samples at a precision that is too expensive
/// for the whole call.
template <class T, class Op>
dense_head<T> forward_row(reference<T>, Op const& op, inputs<Op, any_tensor> const& in, index_t b, index_t h,
                          index_t i) {
  problem_shape const p = detail::checked_inputs("forward_row", op, in);
  if (b < 0 || b >= p.batch || h < 0 || h >= p.heads || i < 0 || i >= p.queries)
    throw error("forward_row", "(batch, head, query)", attune::detail::text("the value (", b, ", ", h, ", ", i, ")"),
                attune::detail::text("indices below (", p.batch, ", ", p.heads, ", ", p.queries, ")"));
  dense_head<T> head = detail::blank_head<T, Op>(p, 1);
  detail::dense_row(op, in, p, b, h, i, head, 0);
  return head;
}

/// The same call as on every other executor: writes the outputs as T.
template <class T, class Op>
void forward(reference<T> exec, Op const& op, inputs<Op, any_tensor> const& in, outputs<Op, T> const& to) {
  shape const e = to.out.extents();
  if constexpr (Fold<Op>)
    detail::require_distinct("forward", "out", to.out);
  else
    detail::check_outputs("forward", to, detail::checked_problem("forward", op, in, e));
  dense_result<T> const result = forward(exec, op, in, e);
  for (index_t b = 0; b < e.batch; ++b)
    for (index_t h = 0; h < e.head; ++h) {
      dense_head<T> const& head = result.at(b, h);
      for (index_t i = 0; i < e.position; ++i) {
        for (index_t d = 0; d < e.feature; ++d) to.out(b, h, i, d) = head.out(i, d);
        if constexpr (Op::has_lse)
          if (!to.lse.values.absent()) to.lse.values(b, h, i, 0) = head.lse(i);
        if constexpr (Op::has_ground_weight)
          if (!to.ground_weight.absent()) to.ground_weight(b, h, i, 0) = head.ground_weight(i);
        if constexpr (Op::has_threshold)
          if (!to.threshold.absent()) to.threshold(b, h, i, 0) = head.threshold(i);
      }
    }
}

}  // namespace attune
