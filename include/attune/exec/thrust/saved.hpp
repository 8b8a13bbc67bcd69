// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   rows = forward_and_save(thrust_on(policy), op, inputs, outputs)
//
// The numbers of each row that a forward pass saves (exec/saved.hpp). Programs write them where they run, and they are
// returned in host memory. So they are the same as the numbers that every other executor saves.
#pragma once

#include <vector>

#include <attune/calls/gradients.hpp>
#include <attune/exec/saved.hpp>
#include <attune/exec/thrust/forward.hpp>

namespace attune {

namespace exec_thrust {

/// The arrays of saved_rows in memory where programs run. Arrays that the operator's family does not have are null. E
/// is T or T const.
template <class E>
struct saved_view {
  using value_type = std::remove_const_t<E>;
  E *reference = nullptr, *earned = nullptr, *ground = nullptr, *lowest = nullptr, *acc = nullptr, *second = nullptr;
  E *level = nullptr, *cut = nullptr, *last = nullptr, *sum = nullptr;
  index_t width = 0;

  /// Saves `stretch` features of row n from `first` on, and with the first of them the row's numbers.
  ATTUNE_HD void operator()(index_t n, index_t first, row_state<value_type, accumulators<value_type>> const& s) const {
    for (int d = 0; d < stretch; ++d) {
      if (first + d >= width) continue;
      acc[n * width + first + d] = s.acc[std::size_t(d)];
      if (second != nullptr) second[n * width + first + d] = s.second[std::size_t(d)];
    }
    if (first != 0) return;
    reference[n] = s.reference;
    earned[n] = s.earned;
    ground[n] = s.ground;
    lowest[n] = s.lowest;
  }
  ATTUNE_HD void operator()(index_t n, index_t first, candidate_threshold<value_type> const& at,
                            value_type const& of_weights) const {
    if (first != 0) return;
    reference[n] = at.reference;
    level[n] = at.level;
    cut[n] = at.cut;
    last[n] = at.last;
    sum[n] = of_weights;
  }
};

/// Calls f(array of rows, its pointer in the view) for each array that the operator's family saves.
template <class Op, class Rows, class View, class F>
void for_each_saved(Rows& rows, View& view, F const& f) {
  f(rows.reference, view.reference);
  if constexpr (Op::has_threshold) {
    f(rows.level, view.level);
    f(rows.cut, view.cut);
    f(rows.last, view.last);
    f(rows.sum, view.sum);
  } else {
    f(rows.earned, view.earned);
    f(rows.ground, view.ground);
    f(rows.lowest, view.lowest);
    f(rows.acc, view.acc);
    f(rows.second, view.second);
  }
}

/// Saved rows in a form that programs of the policy can write; `to` brings them back.
template <class Op, class Rows, class T, class Policy>
saved_view<T> view_to_write(Rows& rows, index_t width, written<T, Policy>& to) {
  saved_view<T> view;
  view.width = width;
  for_each_saved<Op>(rows, view, [&](std::vector<T>& array, T*& pointer) {
    if (!array.empty()) pointer = to.of(array);
  });
  return view;
}

/// Saved rows in a form that programs of the policy can read.
template <class T, class Policy, class Op>
class readable_rows {
 public:
  readable_rows(thrust_executor<T, Policy> const& exec, saved_rows<T, Op> const& rows) {
    for_each_saved<Op>(rows, view, [&](std::vector<T> const& array, T const*& pointer) {
      if constexpr (memory_of_policy<Policy> == memory_kind::device)
        pointer = copies_.emplace_back(exec, array).data();
      else
        pointer = array.data();
    });
  }
  saved_view<T const> view;

 private:
  std::vector<numbers<T, Policy>> copies_;
};

/// forward_rows() that also keeps what it knows about each row, in host memory: statistics() needs it. Costs no more.
/// On a device, the numbers of all rows are copied to the host.
template <class T, class Policy, class Op>
void save_rows(engine, thrust_executor<T, Policy> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in,
               problem_shape const& p, outputs<Op, T> const* out, saved_rows<T, Op>& rows, heads_served const& serves) {
  written to(exec);
  forward_programs(exec, op, in, p, *out, serves, view_to_write<Op>(rows, p.value_width, to));
  to.fetch();
}

}  // namespace exec_thrust
}  // namespace attune
