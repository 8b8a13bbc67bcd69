// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   rows = forward_and_save(exec, op, in, out)
//
// A forward pass saves a few numbers of each row for the backward pass and, for rows of masses, the value sum. The
// memory is linear in Lq, never Lq x Lk.
#pragma once

#include <span>
#include <type_traits>
#include <vector>

#include <attune/exec/states.hpp>

namespace attune {

/// Thresholds of (B, H, Lq) rows with a candidate set; policies/concepts.hpp describes them. Array: a std::vector, or a
/// std::span of the caller's memory.
template <class T, class Array = std::vector<T>>
struct row_thresholds {
  problem_shape extents;  ///< of the call
  Array reference,        ///< B H Lq, as all arrays: see candidate_threshold
      level,              ///< see candidate_threshold
      cut,                ///< see candidate_threshold
      last;               ///< see candidate_threshold
  Array sum;              ///< sum of the weights at the threshold, by which they are divided; NaN in a NaN row

  row_thresholds() = default;
  /// Zeros for the rows of a call.
  template <class Op>
  row_thresholds(Op const&, problem_shape const& p)
      : extents(p), reference(std::size_t(p.batch * p.heads * p.row_count()), T(0)), level(reference), cut(reference),
        last(reference), sum(reference) {}
  /// Each array, in the order in which they lie in one piece of memory.
  template <class Rows, class F>
  static void each_array(Rows& rows, F const& f) {
    index_t const n = rows.extents.batch * rows.extents.heads * rows.extents.row_count();
    f(rows.reference, n), f(rows.level, n), f(rows.cut, n), f(rows.last, n), f(rows.sum, n);
  }
  /// The index of row (b, h, i) in every array.
  index_t at(index_t b, index_t h, index_t i) const {
    return (b * extents.heads + h) * extents.row_count() + i - extents.first_query;
  }
};

/// The saved rows of an operator: thresholds, or the states of all keys (exec/states.hpp). States merged from parts
/// work too.
template <class T, class Op>
using saved_rows = std::conditional_t<Op::has_threshold, row_thresholds<T>, states_of<T, Op>>;

namespace detail {

/// The saved rows of an operator in somebody else's memory. T: const if they are only read.
template <class T, class Op>
using saved_view = std::conditional_t<Op::has_threshold, row_thresholds<std::remove_const_t<T>, std::span<T>>,
                                      row_states<std::remove_const_t<T>, typename Op::normalizer_policy, std::span<T>>>;

/// A view of saved rows.
template <class T, class Op>
saved_view<T const, Op> view_of(saved_rows<T, Op> const& rows) {
  saved_view<T const, Op> view;
  view.extents = rows.extents;
  std::vector<std::span<T const>> arrays;
  saved_rows<T, Op>::each_array(rows, [&](std::vector<T> const& x, index_t) { arrays.emplace_back(x); });
  std::size_t n = 0;
  saved_rows<T, Op>::each_array(view, [&](std::span<T const>& x, index_t) { x = arrays[n++]; });
  return view;
}

/// How many numbers the saved rows of a call are.
template <class T, class Op>
index_t saved_size(problem_shape const& p) {
  saved_view<T, Op> view;
  view.extents = p;
  index_t sum = 0;
  saved_rows<T, Op>::each_array(view, [&](std::span<T>&, index_t n) { sum += n; });
  return sum;
}

/// A view of saved rows that lie in one piece of memory. Throws unless the memory has exactly their size.
template <class Op, class T>
saved_view<T, Op> rows_in(char const* function, std::span<T> memory, problem_shape const& p) {
  using number = std::remove_const_t<T>;
  if (index_t const size = saved_size<number, Op>(p); index_t(memory.size()) != size)
    throw error(function, "memory", text("a span of ", memory.size(), " numbers"),
                text(size, ", as saved_size() says"));
  saved_view<T, Op> view;
  view.extents = p;
  saved_rows<number, Op>::each_array(view, [&](std::span<T>& x, index_t n) {
    x = memory.first(std::size_t(n));
    memory = memory.subspan(std::size_t(n));
  });
  return view;
}

}  // namespace detail

/// How many numbers forward_and_save() keeps of a call with these inputs.
template <class Op, class View>
index_t saved_size(Op const& op, inputs<Op, View> const& in) {
  return detail::saved_size<double, Op>(detail::checked_inputs("saved_size", op, in));
}

}  // namespace attune
