// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Gradients over ranks, by the ring: step t computes the gradients of the own rows through the keys of rank r - t.
// Gradients by keys and values travel back to that rank, which adds them in the order of the steps.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <attune/exec/mpi/forward.hpp>

namespace attune {

namespace exec_mpi {

/// Where the gradients of one rank go. An absent view was not requested; a rank without positions has views without
/// elements.
template <class T>
using gradient_targets = attune::detail::gradient_views<T>;
template <class T>
gradient_targets<T> targets_in(dense_gradients<T>& g) {
  auto const view = [](gradient_array<T>& x) { return tensor<T>(x.values.data(), x.extents); };
  gradient_targets<T> to;
  for (std::size_t f = 0; f < field_count; ++f) to.fields[f] = view(g.fields[f]);
  for (auto& x : g.parameters) to.parameters.push_back(view(x.values));
  for (auto& x : g.tables) to.tables.push_back(view(x.values));
  return to;
}
/// The facts about a request that all ranks must share: the gradients of keys travel, sums are over all ranks.
template <class Op, class T>
auto facts_of(gradient_outputs<Op, T> const& wanted, Op const& op) {
  return [&wanted, &op](call_facts& facts) {
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F))
        facts.add_presence(attune::detail::text("the gradient by ", name_of(F)), !wanted.of(F).absent());
    });
    auto const add = [&](auto const& listed, auto const& given) {
      for (std::size_t n = 0; n < given.size(); ++n)
        facts.add_presence("the gradient by " + listed[n].path(), !given[n].absent());
    };
    add(listed_parameters(op), wanted.parameters);
    add(listed_tables(op), wanted.tables);
  };
}

/// The gradients of one rank while a call computes them.
template <class T, class Arch, class Op>
class rank_gradients {
  using rows_type = exec_cpu::gradients_of_rows<T, Arch, Op>;

 public:
  static constexpr bool two_rounds = rows_type::two_rounds;

  rank_gradients(collective& all, divided_call<T, Op> const& call, cpu<T, Arch> const& exec, Op const& materialized,
                 rows_of_rank<T, Op> const& saved, cotangents<Op, tensor<T const>> const& d, heads_served runs,
                 gradient_targets<T> const& to)
      : call_(call), exec_(exec), to_(to), windows_(call.windows(call.me)),
        running_(running_of_parts(all, call, exec, materialized, windows_, runs)), grown_(call, windows_),
        in_flight_(all.messages()) {
    for (std::size_t w = 0; w < windows_.size(); ++w)
      rows_.emplace_back(exec, materialized, windows_[w].p, saved.windows[w], call.rows_of(d, windows_[w]), runs);
  }

  /// Candidate sets and ordered sums: the sums that the gradients of the own rows need, over the keys of a rank.
  template <class Pause>
  void add_sums(int rank, rank_fields<T const> const& columns, Pause const& pause) {
    for (std::size_t w = 0; w < windows_.size(); ++w)
      for (std::size_t n = 0; n < call_.keys.intervals(rank).size(); ++n) {
        rows_[w].add_sums(call_.part(windows_[w], {}, rank, n, columns), call_.keys.intervals(rank)[n],
                          running_.of(w, rank, n), grown_.of(w, rank, n));
        pause();
      }
  }
  /// Ordered sums: after the round of add_sums.
  void sum_parts() { grown_.sum_before(contraction::opposite(contraction::order_of<typename Op::contractions>)); }

  /// The gradients of the own rows through the keys of a rank. step: of the ring.
  template <class Pause>
  void visit(int step, int rank, rank_fields<T const> const& columns, Pause const& pause) {
    if (step > 0) sent_[step % 2].of(key_shapes(rank)), sent_[step % 2].clear();
    rank_fields<T> const& by_columns = step == 0 ? to_.fields : sent_[step % 2].fields();
    std::size_t const intervals = call_.keys.intervals(rank).size();
    for (std::size_t w = 0; w < windows_.size(); ++w)
      for (std::size_t n = 0; n < (std::max)(intervals, std::size_t(step == 0)); ++n) {
        key_interval const keys = n < intervals ? call_.keys.intervals(rank)[n] : key_interval{};
        index_t const local = n < intervals ? call_.keys.local_start(rank, n) : 0;
        rows_[w].add(call_.part(windows_[w], {}, rank, n, columns), keys, running_.of(w, rank, n),
                     grown_.of(w, rank, n), views(windows_[w], by_columns, local, keys));
        pause();
      }
  }

  /// After the visit of a step: sends its gradients to the rank that has the keys, and gets the gradients by the own
  /// keys. Adds the gradients of the step before.
  void pass_on(collective& all, int step, int rank) {
    receive_last(all);
    if (step == 0) return;
    int const me = call_.me, to = rank_after(call_.ranks, me, step);
    if (call_.sees(to, me)) {
      receive_fields(in_flight_, received_.of(key_shapes(me)), to, tag_of_results);
      arriving_ = true;
    }
    if (call_.sees(me, rank))  // after an exception: numbers of no meaning, which nobody will use
      send_fields(in_flight_, sent_[step % 2].of(key_shapes(rank)), rank, tag_of_results);
  }
  /// After the last step: the sums over all ranks of what the ranks share.
  void finish(collective& all) {
    receive_last(all);
    sum_of_ranks(all);
  }

 private:
  /// The extents of a rank's gradients that travel.
  field_shapes key_shapes(int rank) const {
    return call_.key_shapes(rank, [&](field f) { return !to_.of(f).absent(); });
  }
  /// The gradients of a window of rows and an interval of keys.
  attune::detail::gradient_views<T> views(row_window const& window, rank_fields<T> const& columns, index_t local,
                                          key_interval keys) {
    static T nothing{};
    attune::detail::gradient_views<T> to;
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F)) {
        constexpr auto f = std::size_t(F);
        tensor<T> const& mine = to_.of(F);
        if (mine.absent()) return;
        if constexpr (side_of(F) == input_side::key) {
          tensor<T> const x =
              columns[f].extents().size() == 0 ? tensor<T>(&nothing, mine.extents(), strides{}) : columns[f];
          to.fields[f] = with_positions(x, local, keys, call_.whole.keys);
        } else if (mine.extents().size() != 0) {
          to.fields[f] = call_.shared_by_queries(F)
                             ? attune::detail::shared_axes(mine)
                             : with_positions(mine, window.local, window.rows(), window.p.queries);
        }
      }
    });
    for (tensor<T> const& x : to_.parameters) to.parameters.push_back(attune::detail::shared_axes(x));
    for (tensor<T> const& x : to_.tables) to.tables.push_back(attune::detail::shared_axes(x));
    return to;
  }
  /// at_positions(), in which an index of a shared axis is ignored.
  static tensor<T> with_positions(tensor<T> const& x, index_t local, key_interval at, index_t positions) {
    tensor<T> const y = at_positions(x, local, at, positions);
    shape const e = y.extents();
    strides s = y.steps();
    if (e.batch == 1) s.batch = 0;
    if (e.head == 1) s.head = 0;
    if (e.feature == 1) s.feature = 0;
    return {y.data(), e, s};
  }

  void receive_last(collective& all) {
    in_flight_.wait();
    if (!arriving_) return;
    arriving_ = false;
    all.local([&] {  // the user's threads may throw
      for (std::size_t f = 0; f < field_count; ++f) exec_cpu::add_rows(exec_, received_.fields()[f], to_.fields[f]);
    });
  }

  /// Calls f for each number of x, as they lie in dense memory.
  template <class F>
  static void each_number(tensor<T> const& x, F const& f) {
    shape const e = x.extents();
    for (index_t b = 0; b < e.batch; ++b)
      for (index_t h = 0; h < e.head; ++h)
        for (index_t i = 0; i < e.position; ++i)
          for (index_t d = 0; d < e.feature; ++d) f(x(b, h, i, d));
  }

  /// The sums of parameters, tables and inputs that several rows share. Added in double, first over the windows of a
  /// rank, then over the ranks in their order.
  void sum_of_ranks(collective& all) {
    std::vector<gradient_array<double>> sums;
    for (tensor<T> const& x : to_.parameters) sums.emplace_back(x.extents());
    for (tensor<T> const& x : to_.tables) sums.emplace_back(x.extents());
    std::size_t const listed = sums.size();
    std::vector<field> shared;
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F))
        if (call_.shared_by_queries(F) && !to_.of(F).absent())
          shared.push_back(F), sums.emplace_back(to_.of(F).extents());
    });
    auto const add = [](gradient_array<double>& to, gradient_array<double> const& from) {  // no elements: not requested
      for (std::size_t n = 0; n < to.values.size(); ++n) to.values[n] += from.values[n];
    };
    for (std::size_t w = 0; w < windows_.size(); ++w) {
      if (!rows_[w].total()) continue;  // an exception: the call throws
      auto const& total = *rows_[w].total();
      for (std::size_t n = 0; n < total.parameters.size(); ++n) add(sums[n], total.parameters[n]);
      for (std::size_t n = 0; n < total.tables.size(); ++n) add(sums[total.parameters.size() + n], total.tables[n]);
      attune::detail::gradient_views<T> const to = views(windows_[w], {}, 0, {});
      auto const one = [&](field f, gradient_array<double> const& x) {
        auto const found = std::find(shared.begin(), shared.end(), f);
        if (found != shared.end())
          add(sums[listed + std::size_t(found - shared.begin())], x);
        else
          rows_[w].round(x, to.of(f));
      };
      one(field::v0, total.ground_value);
      for (auto const& x : total.inputs) one(x.of, x.sums);
    }
    std::vector<double> numbers;
    for (auto const& x : sums) numbers.insert(numbers.end(), x.values.begin(), x.values.end());
    all.sum(std::span<double>(numbers));
    auto next = numbers.begin();
    auto const take = [&](tensor<T> const& to) { each_number(to, [&](T& x) { x = T(*next++); }); };
    for (tensor<T> const& x : to_.parameters) take(x);
    for (tensor<T> const& x : to_.tables) take(x);
    for (field const f : shared) take(to_.of(f));
  }

  divided_call<T, Op> const& call_;
  cpu<T, Arch> const& exec_;
  gradient_targets<T> const to_;
  std::vector<row_window> windows_;
  std::vector<rows_type> rows_;  // of windows_
  numbers_of_parts<T, Op> running_, grown_;
  field_memory<T> sent_[2], received_;
  exchange in_flight_;
  bool arriving_ = false;
};

/// Throws unless saved rows belong to the rows of this rank.
template <class T, class Op>
void check_saved(char const* function, divided_call<T, Op> const& call, rows_of_rank<T, Op> const& saved) {
  auto const windows = call.windows(call.me);
  problem_shape const& p = call.whole;
  bool fits = saved.windows.size() == windows.size();
  for (std::size_t w = 0; fits && w < windows.size(); ++w)
    fits =
        attune::detail::rows_of(saved.windows[w]) == shape{p.batch, p.heads, windows[w].p.row_count(), p.value_width} &&
        saved.windows[w].extents.first_query == windows[w].p.first_query;
  if (!fits)
    throw error(function, "saved", "rows of another call", "the result of forward_and_save() of these queries");
}
/// Throws unless saved rows and cotangents belong to the rows of this rank.
template <class T, class Op>
void check_backward(divided_call<T, Op> const& call, rows_of_rank<T, Op> const& saved,
                    cotangents<Op, tensor<T const>> const& d) {
  problem_shape p = call.whole;
  p.queries = call.queries.size(call.me);
  attune::detail::check_cotangents("vjp", d, p);
  check_saved("vjp", call, saved);
}

template <class T, class Op>
shape rows_of_call(inputs<Op, tensor<T const>> const& in, cotangents<Op, tensor<T const>> const& d) {
  return d.out.absent() ? attune::detail::output_shape(in) : d.out.extents();
}

/// vjp() for some heads. targets(): where the gradients go; it may throw.
template <class T, class Arch, class Op, class More, class Targets>
void write_gradients(collective_call<cpu<T, Arch>>& all, Op const& op, inputs<Op, tensor<T const>> const& in,
                     rows_of_rank<T, Op> const& saved, cotangents<Op, tensor<T const>> const& d, heads_served runs,
                     More const& more, Targets const& targets) {
  divided_call<T, Op> const call(all, op, in, rows_of_call(in, d), more);
  std::optional<attune::detail::materialized<Op, T>> fixed;
  gradient_targets<T> const to = all.agreed([&] {
    check_backward(call, saved, d);
    fixed.emplace(op);
    return targets();
  });
  rank_gradients<T, Arch, Op> gradients(all, call, all.each, fixed->op, saved, d, runs, to);
  if constexpr (rank_gradients<T, Arch, Op>::two_rounds) {
    visit_ring(
        all, call, every_field,
        [&](int, int rank, auto const& columns, auto const& pause) { gradients.add_sums(rank, columns, pause); },
        [](int, int) {});
    gradients.sum_parts();
  }
  visit_ring(
      all, call, every_field,
      [&](int step, int rank, auto const& columns, auto const& pause) { gradients.visit(step, rank, columns, pause); },
      [&](int step, int rank) { gradients.pass_on(all, step, rank); });
  gradients.finish(all);
}
/// The same in dense memory.
template <class T, class Arch, class Op, class More>
dense_gradients<T> gradients_of_heads(collective_call<cpu<T, Arch>>& all, Op const& op,
                                      inputs<Op, tensor<T const>> const& in, rows_of_rank<T, Op> const& saved,
                                      cotangents<Op, tensor<T const>> const& d, heads_served runs, More const& more) {
  dense_gradients<T> to;
  write_gradients(all, op, in, saved, d, runs, more, [&] {
    to = attune::detail::blank_gradients<T>(op, in);
    return targets_in(to);
  });
  all.local([&] { attune::detail::pull_projections(listed_parameters(op), to); });
  return to;
}
/// The saved rows of a call of vjp() that has none.
template <class T, class Arch, class Op, class More>
rows_of_rank<T, Op> rows_for_vjp(collective_call<cpu<T, Arch>>& all, Op const& op,
                                 inputs<Op, tensor<T const>> const& in, cotangents<Op, tensor<T const>> const& d,
                                 heads_served runs, More const& more) {
  return rows_of_heads<T>(all, op, in, rows_of_call(in, d), static_cast<outputs<Op, T> const*>(nullptr), runs, more);
}

}  // namespace exec_mpi
}  // namespace attune
