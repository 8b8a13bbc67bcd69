// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   out = sum_n w_n (v_n + t[r_n])        dw_n = <do, v_n + t[r_n]>        dt[r_n] += w_n do
//
// The value term as a textbook writes it: a row of the table for each pair.
#pragma once

#include <attune/exec/reference/contractions/contraction.hpp>

namespace attune::detail {

/// Feature d of the row that the pair (i, j) reads.
template <class T, class Op, class View>
T term_of_pair(reference_contraction<T, Op, View> const& contract, index_t b, index_t h, index_t i, index_t j,
               index_t d) {
  auto const& term = contract.op.value_term;
  return contract.numbers.entry(term.vectors, b, h, term.index(i + contract.p.offset_of(b) - j), d);
}
/// Adds the gradient `move` by that number to the table.
template <class T, class Op, class View>
void pull_term_of_pair(reference_contraction<T, Op, View> const& contract, dense_gradients<T>& to, index_t b, index_t h,
                       index_t i, index_t j, index_t d, T const& move) {
  auto const& term = contract.op.value_term;
  to.add(term.vectors, b, h, term.index(i + contract.p.offset_of(b) - j), d, move);
}

}  // namespace attune::detail
