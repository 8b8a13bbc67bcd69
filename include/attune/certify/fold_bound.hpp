// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   |computed - exact| <= sum_c |c_c| bound_c + unit (N + 1) sum_c |c_c| (|O_c| + bound_c)
//
// The error bound of a fold: the bounds of its terms, and the rounding of coefficients, products and their sum.
#pragma once

#include <cmath>
#include <vector>

#include <attune/calls/fold.hpp>
#include <attune/certify/error_bound.hpp>

namespace attune::certify {

/// Bounds of every element of `out` of a fold. Terms are kept in the format of the arithmetic; `out` is rounded once.
/// Guarantee, errors: as for a single operator. Cancellation of terms does not make the bound smaller.
/// Complexity:        the bounds of the operators.
template <Fold Op>
error_bounds error_bound(Op const& folded, inputs<Op, any_tensor> const& in, precision const& how = {}) {
  shape const e = attune::detail::folded_shape("error_bound", in);
  attune::detail::checked_fold("error_bound", folded, in, e);
  precision of_terms = how;
  of_terms.out = how.arithmetic;
  std::vector<error_bounds> all;
  attune::detail::for_each_operator(folded, [&](auto const& op, index_t, std::string const&) {
    using part = std::remove_cvref_t<decltype(op)>;
    all.push_back(error_bound(op, attune::detail::narrowed<part>(in), of_terms));
  });
  number_format const arithmetic = format_of(how.arithmetic), stored = format_of(how.out);
  error_bounds to;
  to.extents = all.front().extents;
  to.extents.heads = e.head;
  for (index_t b = 0; b < e.batch; ++b)
    for (index_t h = 0; h < e.head; ++h)
      for (index_t i = 0; i < e.position; ++i)
        for (index_t d = 0; d < e.feature; ++d) {
          bounded_number sum;
          double size = 0, squares = 0;
          for (index_t c = 0; c < Op::terms; ++c) {
            bounded_number const& term = Op::heads_each == 1 ? all[std::size_t(c)].at_out(b, h, i, d)
                                                             : all.front().at_out(b, h * Op::heads_each + c, i, d);
            double const x = folded.coefficients[std::size_t(c)].at(b, h, i), weight = std::fabs(x);
            sum.value += x * term.value;
            sum.bound += weight * term.bound;
            sum.drift += weight * term.drift;
            squares += weight * term.scatter * weight * term.scatter;
            size += weight * (std::fabs(term.value) + term.bound);
          }
          double const n = double(Op::terms);
          sum.bound += (n + 1) * arithmetic.unit * size + n * arithmetic.step;
          if (how.out != how.arithmetic)
            sum.bound += stored.unit * (std::fabs(sum.value) + sum.bound) + stored.step / 2;
          sum.drift += (n + 1) * arithmetic.unit * size;
          double const rounding = how.out == how.arithmetic ? 0 : stored.unit * std::fabs(sum.value);
          sum.scatter = std::sqrt(squares + rounding * rounding);
          to.out.push_back(sum);
        }
  return to;
}

}  // namespace attune::certify
