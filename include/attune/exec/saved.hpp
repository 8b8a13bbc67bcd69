// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   rows = forward_and_save(exec, op, in, out)
//
// A forward pass saves a few numbers of each row for the backward pass and, for rows of masses, the value sum. The
// memory is linear in Lq, never Lq x Lk.
#pragma once

#include <type_traits>
#include <vector>

#include <attune/exec/states.hpp>

namespace attune {

/// Thresholds of (B, H, Lq) rows with a candidate set; policies/concepts.hpp describes them.
template <class T>
struct row_thresholds {
  problem_shape extents;     ///< of the call
  std::vector<T> reference,  ///< B H Lq, as all arrays: see candidate_threshold
      level,                 ///< see candidate_threshold
      cut,                   ///< see candidate_threshold
      last;                  ///< see candidate_threshold
  std::vector<T> sum;        ///< sum of the weights at the threshold, by which they are divided; NaN in a NaN row

  row_thresholds() = default;
  /// Zeros for the rows of a call.
  template <class Op>
  row_thresholds(Op const&, problem_shape const& p)
      : extents(p), reference(std::size_t(p.batch * p.heads * p.queries), T(0)), level(reference), cut(reference),
        last(reference), sum(reference) {}
  /// The index of row (b, h, i) in every array.
  index_t at(index_t b, index_t h, index_t i) const { return (b * extents.heads + h) * extents.queries + i; }
};

/// The saved rows of an operator: thresholds, or the states of all keys (exec/states.hpp). States merged from parts
/// work too.
template <class T, class Op>
using saved_rows = std::conditional_t<Op::has_threshold, row_thresholds<T>, states_of<T, Op>>;

}  // namespace attune
