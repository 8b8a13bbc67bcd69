// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   rows = forward_and_save(thrust_on(policy), op, in, {.out = O});
//       s = statistics(thrust_on(policy), op, in, rows, {.columns = true})
//
// A second pass over the rows: with what the forward pass saved, each weight is known at once. In one program a task
// owns a row, in another a column.
#pragma once

#include <attune/calls/statistics.hpp>
#include <attune/exec/row_weights.hpp>
#include <attune/exec/statistics.hpp>
#include <attune/exec/thrust/counts.hpp>
#include <attune/exec/thrust/saved.hpp>

namespace attune {

namespace exec_thrust {

/// The data that both programs read.
template <class T, class Op>
struct statistics_call {
  served_problem<T, Op> at;
  saved_view<T const> saved;
  key_interval keys;
  bool entropy, counts;
  T above;

  template <class Bound>
  ATTUNE_HD attune::detail::row_weights<T> weights(Bound const& f, T const& visible, index_t n) const {
    return attune::detail::weights_of_row<Op>(saved, f.normalizer, visible, [n](T const* x) { return x[n]; });
  }
};

/// Sums over the keys of one row.
template <class T>
struct statistics_sums {
  T logits = T(0), mass = T(0), entropy = T(0);
  ATTUNE_HD void add(statistics_sums const& s) {
    logits = logits + s.logits;
    mass = mass + s.mass;
    entropy = entropy + s.entropy;
  }
};

template <class T, class Op>
struct row_statistics_program {
  statistics_call<T, Op> call;
  T *highest_logit, *mean_logit, *highest_weight, *mass, *first_key, *ground_weight, *entropy;
  index_t *scored, *above;
  index_t const* counts;  ///< K of the rows, or null

  ATTUNE_HD ATTUNE_PROGRAM void operator()(index_t n) const {
    constexpr int together = 64;  // keys that sum from zero: the error grows with this number, not with Lk
    row_task const t(n, call.at.p, 1);
    row_pairs<T, Op> const pairs{call.at, t.b, t.h, t.i};
    row<T> const r = pairs.facts(counts);
    auto const f = call.at.op.bind(r);
    index_t const row = call.at.row_number(t.b, t.h, t.i);
    auto const w = call.weights(f, r.visible, row);
    T const off = -math::infinity<T>();
    T high = off, most = off, first(0);
    statistics_sums<T> all, some;
    index_t count = 0, larger = 0;
    int pending = 0;
    for_each_logit(pairs, f, [&](index_t j, auto const& logit) {
      if (j < call.keys.first || j >= call.keys.last) return;
      T const a = logit();
      T const x = attune::detail::weight_of<Op>(f.normalizer, w, a, key<T>{T(double(j))});
      high = math::larger(high, a);
      most = math::larger(most, x);
      if (!(a == off)) {
        some.logits = some.logits + a;
        ++count;
      }
      some.mass = some.mass + x;
      if (call.counts && x > call.above) ++larger;
      if (call.entropy) some.entropy = some.entropy + attune::detail::entropy_of(x);
      if (j == 0) first = x;
      if (++pending < together) return;
      all.add(some);
      some = {};
      pending = 0;
    });
    all.add(some);
    T const mean = count > 0 ? T(all.logits / T(double(count)) + f.logit_shift) : off;
    highest_logit[row] = attune::detail::or_nan(count > 0 ? T(high + f.logit_shift) : off, mean);
    mean_logit[row] = mean;
    highest_weight[row] = attune::detail::or_nan(most, all.mass);
    mass[row] = all.mass;
    first_key[row] = first;
    ground_weight[row] = w.ground;
    scored[row] = count;
    if (call.entropy) entropy[row] = all.entropy;
    if (call.counts) above[row] = larger;
  }
};

/// Task (b, h, j): the weight that key j received from all queries.
template <class T, class Op>
struct column_program {
  statistics_call<T, Op> call;
  T* columns;
  index_t const* counts;  ///< K of the rows, or null
  ATTUNE_HD ATTUNE_PROGRAM void operator()(index_t n) const {
    problem_shape const& p = call.at.p;
    index_t const j = n % p.keys, h = n / p.keys % p.heads, b = n / (p.keys * p.heads);
    double sum = 0;
    if (j >= call.keys.first && j < call.keys.last)
      for (index_t i = 0; i < p.queries; ++i) {
        if (!mask::sees(call.at.op.mask, p.row(b, h, i), j)) continue;
        row_pairs<T, Op> const pairs{call.at, b, h, i};
        row<T> const r = pairs.facts(counts);
        auto const f = call.at.op.bind(r);
        auto const w = call.weights(f, r.visible, call.at.row_number(b, h, i));
        sum += double(attune::detail::weight_of<Op>(f.normalizer, w, logit_of_key(pairs, f, j), key<T>{T(double(j))}));
      }
    columns[n] = T(sum);
  }
};

/// All statistics of a call over some of the keys, in host memory. The program for columns binds each row again for
/// every key; with an ordered sum it walks the row again too. The keys that a predicate mask shows are counted once per
/// row.
template <class T, class Policy, class Op>
void statistics_of_rows(engine, thrust_executor<T, Policy> const& exec, Op const& op,
                        inputs<Op, tensor<T const>> const& in, problem_shape const& p, saved_rows<T, Op> const& saved,
                        statistics_request const& request, key_interval keys, row_statistics<T>& to) {
  index_t const rows = row_task::count(p, 1);
  if (rows == 0) return;
  settled<T, Policy, Op> const fixed(exec, op);
  readable_rows<T, Policy, Op> const rows_there(exec, saved);
  statistics_call<T, Op> const call{
      {fixed.op, fixed.readable(in), p}, rows_there.view, keys, request.entropy, request.above.has_value(),
      T(request.above.value_or(0))};
  row_counts<T, Policy, Op> counts(exec, call.at, 1 + (request.columns ? p.keys : 0));
  written results(exec);
  row_statistics_program<T, Op> const program{call,
                                              results.of(to.highest_logit),
                                              results.of(to.mean_logit),
                                              results.of(to.highest_weight),
                                              results.of(to.mass),
                                              results.of(to.first_key),
                                              results.of(to.ground_weight),
                                              results.of(to.entropy),
                                              results.of(to.scored),
                                              results.of(to.above),
                                              counts.data()};
  for_each_task(exec, rows, program);
  if (request.columns)
    for_each_task(exec, index_t(to.columns.size()), column_program<T, Op>{call, results.of(to.columns), counts.data()});
  results.fetch();
}

}  // namespace exec_thrust
}  // namespace attune
