// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   row_counts(exec, problem, tasks each).data()   K of each row, or null: then a task counts the keys of its row
//
// A predicate mask is asked about every key of a row to find K. Where several tasks bind the same row, K is counted
// once, in a program that runs before.
#pragma once

#include <optional>

#include <attune/exec/thrust/memory.hpp>

namespace attune::exec_thrust {

/// Counts the visible keys of row n.
template <class T, class Op>
struct count_program {
  served_problem<T, Op> at;
  index_t* to;
  ATTUNE_HD index_t tasks() const { return row_task::count(at.p, 1); }
  ATTUNE_HD ATTUNE_PROGRAM void operator()(index_t n) const {
    row_task const t(n, at.p, 1);
    if (at.serves(t.h)) to[at.row_number(t.b, t.h, t.i)] = mask::count(at.op.mask, at.p.row(t.b, t.h, t.i));
  }
};

/// The numbers of visible keys of all rows, where programs read them. Masks that list intervals are not counted here:
/// a task counts their intervals in passing.
template <class T, class Policy, class Op>
class row_counts {
 public:
  /// `binds`: how many tasks bind each row.
  row_counts(thrust_executor<T, Policy> const& exec, served_problem<T, Op> const& at, index_t binds) {
    if constexpr (Op::mask_policy::form == mask_form::predicate) {
      if (binds < 2) return;
      count_program<T, Op> program{at, nullptr};
      program.to = kept_.emplace(exec, program.tasks()).data();
      for_each_task(exec, program.tasks(), program);
    }
  }
  index_t const* data() { return kept_ ? kept_->data() : nullptr; }

 private:
  std::optional<numbers<index_t, Policy>> kept_;
};

}  // namespace attune::exec_thrust
