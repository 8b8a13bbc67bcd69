// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   rows = forward_and_save(exec, op, in, out)
//
// What a forward pass leaves of each row for the backward pass: a few numbers and, where a row is a sum of masses, its
// value sum. Linear in Lq, never Lq x Lk.
#pragma once

#include <type_traits>
#include <vector>

#include <attune/exec/states.hpp>

namespace attune {

/// Thresholds of (B, H, Lq) rows with a candidate set, as policies/concepts.hpp describes them.
template <class T>
struct row_thresholds {
  problem_shape extents;
  std::vector<T> reference, level, cut, last;  ///< B H Lq
  std::vector<T> sum;  ///< of the weights at the threshold, which are divided by it; NaN in a row of NaN

  row_thresholds() = default;
  template <class Op>
  row_thresholds(Op const&, problem_shape const& p)
      : extents(p), reference(std::size_t(p.batch * p.heads * p.queries), T(0)), level(reference), cut(reference),
        last(reference), sum(reference) {}
  index_t at(index_t b, index_t h, index_t i) const { return (b * extents.heads + h) * extents.queries + i; }
};

/// The saved rows of an operator: the states of all keys (exec/states.hpp; merged from parts they serve as well), or
/// thresholds.
template <class T, class Op>
using saved_rows = std::conditional_t<Op::has_threshold, row_thresholds<T>, states_of<T, Op>>;

}  // namespace attune
