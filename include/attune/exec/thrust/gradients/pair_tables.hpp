// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   d table(row, d) = sum of dx_ij d x_ij / d table over the pairs that read the row
//
// The gradient of a table with a row for each pair, without atomics: every task adds to its own copy of the table. The
// copies are summed afterwards.
#pragma once

#include <attune/exec/thrust/gradients/gradient_programs.hpp>

namespace attune::exec_thrust {

/// A part of the gradient of a table with a row for each pair: (B, H, groups of queries, rows x width). A task adds the
/// pairs of one group of queries to its own part of the table.
template <class T, class Op, class Wanted, class Operand, int Only>
struct pair_table_program {
  gradient_call<T, Op> call;
  tensor<T> to;  ///< zeros at first
  Wanted wanted;
  index_t rows, width, queries;  ///< of the table; queries of a group

  ATTUNE_HD index_t tasks() const {
    shape const e = to.extents();
    return e.batch * e.head * e.position * stretches(width);
  }
  ATTUNE_HD ATTUNE_PROGRAM void operator()(index_t n) const {
    shape const e = to.extents();
    index_t const pieces = stretches(width), first = n / e.position % pieces * stretch, group = n % e.position,
                  h = n / (e.position * pieces) % e.head, b = n / (e.position * pieces * e.head);
    if (!call.at.serves(h)) return;
    index_t const begin = group * queries, last = begin + queries, all = call.at.p.queries;
    for (index_t i = begin; i < (last < all ? last : all); ++i) {
      row_gradients<T, Op, false> const row(call, b, h, i);
      row.view.for_each_key([&](index_t j) {
        auto const pair = row(j);
        row.view.each_contraction([&](auto c, auto const& owner, auto number) {
          constexpr int at = decltype(number)::value;
          if constexpr (Only == at) {
            index_t const entry = attune::detail::pair_row<Operand>(owner, i + call.at.p.offset_of(b), j);
            if (entry < 0) return;
            accumulators<T> acc(0, T(0));
            pull_operands<decltype(c)>(wanted, row, owner, pair.by_contraction[at], j, first, width, acc);
            features const sums(to, b, h, group, entry * width + first);
            ATTUNE_UNROLL
            for (int d = 0; d < stretch; ++d) {
              if (first + d >= width) break;
              sums[d] = sums[d] + acc.x[d];
            }
          }
        });
      });
    }
  }
};

}  // namespace attune::exec_thrust
