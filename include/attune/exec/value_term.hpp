// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   out_i = sum_j w_ij (v_j + t_n),   n = index(i + offset - j)
//
// The row that a pair reads of a value term's table, and the check of that table. A value term changes no weight. It
// adds to the value sums, so whatever rescales, merges or stores them needs no change.
#pragma once

#include <attune/exec/terms.hpp>
#include <attune/policies/value_term/concepts.hpp>

namespace attune::detail {

/// The table as a contraction would read it: check_contraction() looks for a row for each distance.
struct vectors_by_distance : contraction::plain<contraction::by_distance<contraction::tables::vectors>> {};

/// Throws unless the rows of the table are as wide as v.
template <class Op>
void check_width_of_term(char const* function, Op const& op, problem_shape const& p) {
  if (index_t const columns = op.value_term.vectors.columns(); columns != p.value_width)
    throw error(function, "table vectors", text(columns, " columns"), text(p.value_width, ", the width of v"));
}

/// The row of the table that the pair (i, j) reads.
template <class Op>
ATTUNE_HD index_t row_of_term(Op const& op, problem_shape const& p, index_t b, index_t i, index_t j) {
  return contraction::tables::vectors::row(op.value_term, i + p.offset_of(b) - j);
}

}  // namespace attune::detail
