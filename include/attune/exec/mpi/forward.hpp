// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// forward() and forward_and_save() over ranks, for the heads that an operator runs.
#pragma once

#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <attune/exec/materialized.hpp>
#include <attune/exec/mpi/plans.hpp>
#include <attune/exec/saved.hpp>

namespace attune {

/// The saved rows of one rank: an object for each interval of its queries.
template <class T, class Op>
struct rows_of_rank {
  std::vector<saved_rows<T, Op>> windows;  ///< in the order of the intervals
};

namespace exec_mpi {

/// The saved rows of a window whose states are complete.
template <class T, class Op>
saved_rows<T, Op> rows_to_save(Op const&, row_states<T, typename Op::normalizer_policy>&& states) {
  return std::move(states);
}
/// The same for candidate sets: the threshold that the candidates of all ranks agree on.
template <class T, class Op>
saved_rows<T, Op> rows_to_save(Op const& op, candidate_states<T, typename Op::normalizer_policy>&& states) {
  saved_rows<T, Op> to(op, states.extents);
  for (std::size_t n = 0; n < states.rows.size(); ++n) {
    candidate_threshold<T> const at = states.level(n);
    T sum(0);
    for (auto const& c : states.rows[n])
      sum = sum + states.normalizers[n].weight(at, c.logit, key<T>{T(double(c.key))});
    to.reference[n] = at.reference, to.level[n] = at.level, to.cut[n] = at.cut, to.last[n] = at.last;
    to.sum[n] = sum + states.poisons[n];
  }
  return to;
}

/// Row states whose value sums lie in the output, if it has the memory for them, or else next to the other numbers.
template <class T, class Op>
class states_in_output {
 public:
  using states = row_states<T, typename Op::normalizer_policy, std::span<T>>;

  states_in_output() = default;
  states_in_output(std::vector<row_window> const& windows, tensor<T> const& out) {
    numbers_.reserve(windows.size());
    for (row_window const& w : windows) {
      problem_shape const& p = w.p;
      bool const here = is_dense(out) && (windows.size() == 1 || p.batch * p.heads == 1);
      states s;
      s.extents = p;
      index_t size = 0;
      states::each_array(s, [&](std::span<T>& x, index_t n) { size += here && &x == &s.acc ? 0 : n; });
      numbers_.emplace_back(std::size_t(size), T(0));
      std::span<T> memory = numbers_.back();
      states::each_array(s, [&](std::span<T>& x, index_t n) {
        if (here && &x == &s.acc) {
          x = {out.row(0, 0, w.local), std::size_t(n)};
        } else {
          x = memory.first(std::size_t(n));
          memory = memory.subspan(std::size_t(n));
        }
      });
      windows_.push_back(s);
    }
  }
  std::vector<states>& windows() { return windows_; }

 private:
  std::vector<std::vector<T>> numbers_;
  std::vector<states> windows_;
};
template <class T, class Op>
std::vector<states_of<T, Op>> states_of_windows(Op const& op, std::vector<row_window> const& windows) {
  std::vector<states_of<T, Op>> all;
  all.reserve(windows.size());
  for (row_window const& w : windows) all.emplace_back(op, w.p);
  return all;
}

template <class T, class Arch, class Op, class States>
void finish_windows(divided_call<T, Op> const& call, cpu<T, Arch> const& exec, Op const& op,
                    std::vector<row_window> const& windows, std::vector<States> const& states,
                    outputs<Op, T> const& out, heads_served runs) {
  for (std::size_t w = 0; w < windows.size(); ++w)
    exec_cpu::finish_window(exec, op, call.rows_alone(windows[w]), windows[w].p, states[w],
                            call.rows_of(out, windows[w]), runs);
}

/// No more facts to compare.
inline constexpr auto no_more_facts = [](call_facts&) {};

/// Before a forward pass: checks the plan and the outputs, and computes the operator's parameters. out: may be null.
template <class T, class Exec, class Op>
void prepare_forward(collective_call<Exec>& all, divided_call<T, Op> const& call, outputs<Op, T> const* out,
                     std::optional<attune::detail::materialized<Op, T>>& fixed) {
  all.agreed([&] {
    if (!has_states_plan<Op> && all.where.plan == rank_plan::states)
      throw error(all.function(), "the plan", "the value rank_plan::states",
                  "rank_plan::ring or chosen: candidate sets and ordered sums have no states that travel");
    if (out != nullptr) call.check_outputs(all.function(), *out);
    fixed.emplace(call.op);
  });
}

/// forward() for some heads.
template <class T, class Arch, class Op, class More>
void forward_of_heads(collective_call<cpu<T, Arch>>& all, Op const& op, inputs<Op, tensor<T const>> const& in,
                      outputs<Op, T> const& out, heads_served runs, More const& more) {
  divided_call<T, Op> const call(all, op, in, out.out.extents(), more);
  std::optional<attune::detail::materialized<Op, T>> fixed;
  prepare_forward(all, call, &out, fixed);
  auto const windows = call.windows(call.me);
  auto const run = [&](auto& states) {
    states_of_rows(all, call, fixed->op, windows, runs, states);
    all.local([&] { finish_windows(call, all.each, fixed->op, windows, states, out, runs); });
  };
  if constexpr (Op::has_threshold) {
    std::vector<states_of<T, Op>> states;
    all.local([&] { states = states_of_windows<T>(fixed->op, windows); });
    run(states);
  } else {
    states_in_output<T, Op> states;
    all.local([&] { states = states_in_output<T, Op>(windows, out.out); });
    run(states.windows());
  }
}
/// The saved rows of some heads. out: where their outputs go; null if nowhere.
template <class T, class Arch, class Op, class More>
rows_of_rank<T, Op> rows_of_heads(collective_call<cpu<T, Arch>>& all, Op const& op,
                                  inputs<Op, tensor<T const>> const& in, shape const& extents,
                                  outputs<Op, T> const* out, heads_served runs, More const& more) {
  divided_call<T, Op> const call(all, op, in, extents, more);
  std::optional<attune::detail::materialized<Op, T>> fixed;
  prepare_forward(all, call, out, fixed);
  auto const windows = call.windows(call.me);
  std::vector<states_of<T, Op>> states;
  all.local([&] { states = states_of_windows<T>(fixed->op, windows); });
  states_of_rows(all, call, fixed->op, windows, runs, states);
  rows_of_rank<T, Op> saved;
  all.local([&] {
    if (out != nullptr) finish_windows(call, all.each, fixed->op, windows, states, *out, runs);
    for (auto& s : states) saved.windows.push_back(rows_to_save<T>(fixed->op, std::move(s)));
  });
  return saved;
}

}  // namespace exec_mpi
}  // namespace attune
