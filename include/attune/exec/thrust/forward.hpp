// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   forward(thrust_on(thrust::device), op, {.q = Q, .k = K, .v = V}, {.out = O})
#pragma once

#include <attune/calls/forward.hpp>
#include <attune/exec/states.hpp>
#include <attune/exec/thrust/candidates.hpp>
#include <attune/exec/thrust/counts.hpp>
#include <attune/exec/thrust/hooks/ordered.hpp>
#include <attune/exec/thrust/hooks/pair_values.hpp>
#include <attune/exec/thrust/hooks/weight_gate.hpp>

namespace attune {

namespace exec_thrust {

/// A row before ground value and output gate: `stretch` features of its value sum, and its numbers.
template <class T>
struct row_result {
  accumulators<T> out{0, T(0)};
  T ground_weight = T(0), lse = T(0), threshold = T(0);
};

/// v_jd after its gate for features that exist, 0 past the last. The address is computed here on purpose. If it were
/// computed once before a loop that ends only by its length, the compiler could hold the values of all features at
/// once, which costs 10 to 20 registers.
template <class T, class Op>
ATTUNE_HD T value_or_zero(row_pairs<T, Op> const& pairs, typename row_pairs<T, Op>::bound const& f, index_t j,
                          index_t d) {
  return d < pairs.at.p.value_width ? values_of_pair(pairs, f, j, d)(0) : T(0);
}

/// Receives a row's state, or its threshold and the sum of its weights, before the row is finished. This one drops
/// them.
struct keeps_nothing {
  template <class... State>
  ATTUNE_HD void operator()(index_t, index_t, State const&...) const {}
};

/// Features [first, first + stretch) of row number n, which has `visible` keys.
template <class T, class Op, class Keep = keeps_nothing>
ATTUNE_HD ATTUNE_PROGRAM row_result<T> result_of_row(row_pairs<T, Op> const& pairs,
                                                     typename row_pairs<T, Op>::bound const& f, T const& visible,
                                                     index_t first, index_t n = 0, Keep const& keep = {}) {
  using normalizer = typename Op::normalizer_policy;
  row_result<T> r;
  if constexpr (Op::has_threshold) {
    recomputed_column<T, Op> column(pairs, f, index_t(visible));
    candidate_threshold<T> const level = f.normalizer.solve(column);
    T sum(0), poison(0);
    pairs.for_each_key([&](index_t j) {
      T const a = same_logit(pairs, f, j);
      poison = poison + nan_carrier(a);
      T const w = f.normalizer.weight(level, a, key<T>{T(double(j))});
      if (w == T(0)) return;  // outside the support: the value is never read
      sum = sum + w;
      T const gated = pair_factor(pairs, f, j)(w);
      index_t from = first;
      ATTUNE_KEEP_HERE(from);
      auto const value = values_of_pair(pairs, f, j, from);
      ATTUNE_UNROLL
      for (int d = 0; d < stretch; ++d) {
        if (from + d >= pairs.at.p.value_width) break;
        r.out.x[d] = r.out.x[d] + gated * value(d);
      }
    });
    keep(n, first, level, T(sum + poison));
    auto const done = finish_candidates(f.normalizer, level, sum, poison);
    for (int d = 0; d < stretch; ++d) r.out.x[d] = r.out.x[d] * done.value_factor;
    r.threshold = done.threshold;
  } else {
    auto state = row_state<T, accumulators<T>>::template empty<normalizer>(f.normalizer, stretch);
    for_each_logit(pairs, f, [&](index_t j, auto const& logit) {
      index_t from = first;
      ATTUNE_KEEP_HERE(from);
      state.template accumulate<normalizer>(f.normalizer, logit(), [&, gated = pair_factor(pairs, f, j)](index_t d) {
        return gated(value_or_zero(pairs, f, j, from + d));
      });
    });
    keep(n, first, state);
    auto const done = finish_state<normalizer>(state, f.normalizer, visible);
    r.out = state.acc;
    r.ground_weight = done.ground_weight;
    r.lse = done.lse;
  }
  return r;
}

/// One row of the forward pass, `stretch` features of it.
template <class T, class Op, class Keep = keeps_nothing>
struct forward_program {
  served_problem<T, Op> at;
  outputs<Op, T> to;
  Keep keep = {};
  index_t const* counts = nullptr;  ///< K of the rows, or null

  ATTUNE_HD index_t pieces() const { return at.p.value_width < 1 ? 1 : stretches(at.p.value_width); }
  ATTUNE_HD index_t tasks() const { return row_task::count(at.p, pieces()); }
  ATTUNE_HD ATTUNE_PROGRAM void operator()(index_t n) const {
    row_task const t(n, at.p, pieces());
    if (!at.serves(t.h)) return;
    row_pairs<T, Op> const pairs{at, t.b, t.h, t.i};
    row<T> const r = pairs.facts(counts);
    auto const f = at.op.bind(r);
    index_t const first = t.piece * stretch;
    auto const done = result_of_row(pairs, f, r.visible, first, at.row_number(t.b, t.h, t.i), keep);
    features const out(to.out, t.b, t.h, t.i, first);
    ATTUNE_UNROLL
    for (int d = 0; d < stretch; ++d) {
      if (first + d >= at.p.value_width) break;
      out[d] = attune::detail::finished_element<T>(at.in, at.p, f, done.out.x[d], done.ground_weight, t.b, t.h, t.i,
                                                   first + d);
    }
    if (t.piece == 0)
      attune::detail::write_row_numbers(to, f, done.ground_weight, done.lse, done.threshold, t.b, t.h, t.i);
  }
};

/// Runs the heads of one operator of a mixture, or all heads. Keep stores numbers of each row.
template <class T, class Policy, class Op, class Keep = keeps_nothing>
void forward_programs(thrust_executor<T, Policy> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in,
                      problem_shape const& p, outputs<Op, T> const& out, heads_served const& serves,
                      Keep const& keep = {}) {
  settled<T, Policy, Op> const fixed(exec, op);
  forward_program<T, Op, Keep> program{{fixed.op, fixed.readable(in), p, serves}, out, keep};
  row_counts<T, Policy, Op> counts(exec, program.at, program.pieces());
  program.counts = counts.data();
  for_each_task(exec, program.tasks(), program);
}

/// The rows of the heads that `serves` accepts, one task per row and 32 features of the output. A task runs the
/// recurrence of operators/row_state.hpp over the visible keys, or finds the threshold of a candidate set and then sums
/// its values.
/// Complexity:  2 D ceil(Dv / 32) + 2 Dv flops per visible pair. With a candidate set, the first term counts once more
///              for each step to the threshold until 64 keys are left (3 to 8). A predicate mask is asked about the
///              keys of a row once to count them, and once for each 32 features.
template <class T, class Policy, class Op>
void forward_rows(engine, thrust_executor<T, Policy> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in,
                  problem_shape const& p, outputs<Op, T> const& out, heads_served const& serves) {
  forward_programs(exec, op, in, p, out, serves);
}

}  // namespace exec_thrust
}  // namespace attune
