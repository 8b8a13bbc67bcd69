// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   v_j after its gate, and the numbers that the pair adds to it
//
// The hooks that add to value sums stand here, and nowhere else in row programs.
#pragma once

#include <attune/exec/thrust/hooks/value_term.hpp>

namespace attune::exec_thrust {

/// The numbers that key j adds to the value sum for a weight of 1, as a function of the feature, counted from `first`.
template <class T, class Op>
ATTUNE_HD auto values_of_pair(row_pairs<T, Op> const& pairs, typename row_pairs<T, Op>::bound const& f, index_t j,
                              index_t first) {
  if constexpr (Op::has_value_term)
    return [v = pairs.values(f, j, first), t = term_of_pair(pairs, j, first)](index_t d) { return v(d) + t(d); };
  else
    return pairs.values(f, j, first);
}

/// Calls visit(table, how a distance finds its row, its policy in the operator, parts -> program) for each table whose
/// rows pairs add, by distance.
template <class T, class Op, class Visit>
void each_added_table([[maybe_unused]] gradient_call<T, Op> const& call, [[maybe_unused]] Visit const& visit) {
  if constexpr (Op::has_value_term)
    visit(call.at.op.value_term.vectors, contraction::tables::vectors{}, owner_of_term{},
          [&](tensor<T> const& parts) { return term_program<T, Op>{call, parts}; });
}

}  // namespace attune::exec_thrust
