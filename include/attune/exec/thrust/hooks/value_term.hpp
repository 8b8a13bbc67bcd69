// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   v_j  ->  v_j + t_n        dt_n = sum of w_ij do_i over the pairs that read row n
//
// The value term (exec/value_term.hpp) in row programs. Its table has a row for each distance: its gradient is summed
// by distance first, as the gradients of tables of contractions are.
#pragma once

#include <attune/exec/thrust/rows.hpp>
#include <attune/exec/value_term.hpp>

namespace attune::exec_thrust {

/// The row that the pair with key j reads, as a function of the feature, counted from `first`.
template <class T, class Op>
ATTUNE_HD auto term_of_pair(row_pairs<T, Op> const& pairs, index_t j, index_t first) {
  return [&x = pairs.at.op.value_term.vectors, b = pairs.b, h = pairs.h, first,
          row = attune::detail::row_of_term(pairs.at.op, pairs.at.p, pairs.b, pairs.i, j)](index_t d) {
    return lift<T>{}.entry(x, b, h, row, first + d);
  };
}

// exec/thrust/gradients/gradient_rows.hpp
template <class T, class Op>
struct gradient_call;
template <class T, class Op, bool Parameters>
class row_gradients;

/// Sums of w_ij do_i over all pairs of one distance: (B, H, Lq + Lk - 1, Dv).
template <class T, class Op>
struct term_program {
  gradient_call<T, Op> call;
  tensor<T> to;

  ATTUNE_HD index_t tasks() const {
    shape const e = to.extents();
    return e.batch * e.head * e.position * stretches(e.feature);
  }
  ATTUNE_HD ATTUNE_PROGRAM void operator()(index_t n) const {
    problem_shape const& p = call.at.p;
    shape const e = to.extents();
    index_t const pieces = stretches(e.feature), first = n / e.position % pieces * stretch;
    index_t const distance = n % e.position, h = n / (e.position * pieces) % e.head,
                  b = n / (e.position * pieces * e.head);
    if (!call.at.serves(h)) return;
    accumulators<T> acc(0, T(0));
    for (index_t i = 0; i < p.queries && !call.d_out.absent(); ++i) {
      index_t const j = i + (p.keys - 1) - distance;
      if (j < 0 || j >= p.keys || !mask::sees(call.at.op.mask, p.row(b, h, i), j)) continue;
      T const weight = row_gradients<T, Op, false>(call, b, h, i)(j).weight;
      if (Op::has_threshold && weight == T(0)) continue;
      features const d_out(call.d_out, b, h, i, first);
      ATTUNE_UNROLL
      for (int d = 0; d < stretch; ++d) {
        if (first + d >= e.feature) break;
        acc.x[d] = acc.x[d] + weight * d_out[d];
      }
    }
    acc.write(features(to, b, h, distance, first), e.feature - first);
  }
};
/// Finds the value term in an operator.
struct owner_of_term {
  template <class Op>
  ATTUNE_HD static auto const& of(Op const& op) {
    return op.value_term;
  }
};

}  // namespace attune::exec_thrust
