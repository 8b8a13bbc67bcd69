// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   g = vjp(thrust_on(thrust::device), op, {.q = Q, .k = K, .v = V}, {.out = dO})
#pragma once

#include <algorithm>

#include <attune/calls/gradients.hpp>
#include <attune/exec/gradients.hpp>
#include <attune/exec/thrust/gradients/entry_program.hpp>
#include <attune/exec/thrust/gradients/pair_tables.hpp>

namespace attune {

namespace exec_thrust {

/// Launches the programs of one VJP.
template <class T, class Policy, class Op>
class gradient_run {
  using executor = thrust_executor<T, Policy>;
  using memory = numbers<T, Policy>;
  static constexpr int parameters = parameter_count<Op>;

 public:
  gradient_run(executor const& exec, Op const& original, inputs<Op, tensor<T const>> const& in, problem_shape const& p,
               cotangents<Op, tensor<T const>> const& d, heads_served serves)
      : exec_(exec), original_(original), op_(exec, original), p_(p), d_(d),
        records_(exec, p.batch * p.heads * p.queries),
        row_parameters_(exec, p.batch * p.heads * p.queries * parameters),
        call_{{op_.op, op_.readable(in), p, serves}, d.out, {}, {}, records_.data(), row_parameters_.data()} {
    if constexpr (Op::has_lse) call_.d_lse = d.lse;
    if constexpr (Op::has_ground_weight) call_.d_ground_weight = d.ground_weight;
  }

  dense_gradients<T> operator()() {
    dense_gradients<T> to = attune::detail::blank_gradients<T>(original_, call_.at.in);
    index_t const rows = row_task::count(p_, 1);
    memory opened(exec_, Op::has_output_gate ? rows * p_.value_width : 0);
    if constexpr (Op::has_output_gate)
      if (given()) {
        tensor<T> const behind(opened.data(), rows_of(p_.value_width));
        for_each_task(exec_, rows, open_gate_program<T, Op>{call_.at, d_.out, behind});
        call_.d_out = behind;
      }
    index_t const numbers_kept = derived_pairs<T, Op>::size(p_);
    memory sums(exec_, numbers_kept), grown(exec_, numbers_kept);
    call_.derived = {sums.data(), grown.data()};
    record_program<T, Op> const record{call_};
    for_each_task(exec_, record.tasks(), record);
    grow_derived(exec_, call_);
    pairs(to);
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F)) {
        if constexpr (side_of(F) == input_side::query && !shares_rows(F))
          with(to.of(F), [&](tensor<T> const& g) {
            launch(query_program<T, Op, wanted_field<operand_side::query>>{call_, g, {F}});
          });
        if constexpr (side_of(F) == input_side::key && F != field::v && F != field::value_gate)
          with(to.of(F), [&](tensor<T> const& g) { launch(key_program<T, Op>{call_, g, {F}}); });
      }
    });
    values(to);
    each_derived_input(call_, [&](field f, index_t width, auto const& program_to) {
      with_all(to.of(f), rows_of(width), [&](tensor<T> const& g) { for_each_task(exec_, rows, program_to(g)); });
    });
    if constexpr (Op::has_output_gate)
      if (given())
        with_all(to.of(field::output_gate), rows_of(p_.output_gate_width),
                 [&](tensor<T> const& g) { for_each_task(exec_, rows, output_gate_program<T, Op>{call_, d_.out, g}); });
    if constexpr (Op::uses(field::v0)) {
      memory parts(exec_, rows * p_.value_width);
      tensor<T> const of_rows(parts.data(), rows_of(p_.value_width));
      for_each_task(exec_, rows, ground_value_program<T, Op>{call_, of_rows});
      with(to.of(field::v0), [&](tensor<T> const& g) { sum(of_rows, g); });
    }
    tables(to);
    int s = 0;
    for (operator_parameter const& p : listed_parameters(original_)) {
      tensor<T> const of_rows(row_parameters_.data() + s, {p_.batch, p_.heads, p_.queries, 1},
                              {p_.heads * p_.queries * parameters, p_.queries * parameters, parameters, 1});
      with(to.parameters[std::size_t(s)].values, [&](tensor<T> const& g) { sum(of_rows, g); });
      if constexpr (executor::memory == memory_kind::host)  // sources in device memory cannot be read here
        attune::detail::pull_projection(*p.at, to.parameters[std::size_t(s)]);
      ++s;
    }
    return to;
  }

 private:
  /// Numbers that the parts of the gradient of a table with a row for each pair may take. One part per head may take
  /// more.
  static constexpr index_t pair_parts = index_t(1) << 24;

  bool given() const { return !d_.out.absent(); }
  shape rows_of(index_t width) const { return {p_.batch, p_.heads, p_.queries, width}; }
  template <class Program>
  void launch(Program const& program) const {
    for_each_task(exec_, program.tasks(), program);
  }
  /// Calls run(view of a gradient in memory where programs run). Afterwards its values are in `to`.
  template <class Run>
  void with(gradient_array<T>& to, Run const& run) const {
    if (to.extents.size() == 0) return;
    if constexpr (executor::memory == memory_kind::host) {
      run(tensor<T>(to.values.data(), to.extents));
    } else {
      memory there(exec_, to.extents.size());
      run(tensor<T>(there.data(), to.extents));
      to.values = there.copied();
    }
  }
  /// The same for an input that tasks may share: they write to a tensor of extents `all`, whose sums are the gradient.
  template <class Run>
  void with_all(gradient_array<T>& to, shape const& all, Run const& run) const {
    with(to, [&](tensor<T> const& g) {
      if (g.extents() == all) return run(g);
      memory own(exec_, all.size());
      tensor<T> const whole(own.data(), all);
      run(whole);
      sum(whole, g);
    });
  }
  /// Sums in two steps: over queries, then over heads and batches. So a number shared by all rows is no single long
  /// loop.
  void sum(tensor<T> const& of_rows, tensor<T> const& to) const {
    shape const e = to.extents(), some{of_rows.extents().batch, of_rows.extents().head, e.position, e.feature};
    memory between(exec_, some.size());
    tensor<T> const half(between.data(), some);
    for_each_task(exec_, some.size(), sum_program<T>{of_rows, half});
    for_each_task(exec_, e.size(), sum_program<T>{half, to});
  }

  /// Calls run() with the memory for the gradients by inputs with a number for each pair, from field F on.
  template <std::size_t F, class Run>
  void with_pairs(dense_gradients<T>& to, pairs_program<T, Op>& program, Run const& run) const {
    if constexpr (F == field_count) {
      run();
    } else if constexpr (Op::uses(field(F)) && side_of(field(F)) == input_side::pair) {
      with_all(to.of(field(F)), rows_of(p_.keys), [&](tensor<T> const& x) {
        program.by_pairs[pair_index(field(F))] = x;
        with_pairs<F + 1>(to, program, run);
      });
    } else {
      with_pairs<F + 1>(to, program, run);
    }
  }
  void pairs(dense_gradients<T>& to) const {
    if constexpr (attune::detail::reads_pairs<Op>() || parameters > 0) {
      pairs_program<T, Op> program{call_, {}};
      with_pairs<0>(to, program, [&] { for_each_task(exec_, row_task::count(p_, 1), program); });
    }
  }
  void values(dense_gradients<T>& to) const {
    with(to.of(field::v), [&](tensor<T> const& v) {
      if constexpr (Op::has_value_gate)
        with_all(to.of(field::value_gate), to.of(field::v).extents,
                 [&](tensor<T> const& gate) { launch(value_program<T, Op>{call_, v, gate}); });
      else
        launch(value_program<T, Op>{call_, v, {}});
    });
  }
  void tables(dense_gradients<T>& to) {
    [&]<class... C, int... Index>(contraction::list<C...>, std::integer_sequence<int, Index...>) {
      (..., (operand<C, Index, 0>(to), operand<C, Index, 1>(to), operand<C, Index, 2>(to)));
    }(typename Op::contractions{}, std::make_integer_sequence<int, Op::contractions::size>{});
    each_added_table(call_, [&]<class Table, class Owner>(table const& x, Table, Owner, auto const& program_of) {
      with(to.tables[std::size_t(x.number())].values,
           [&](tensor<T> const& total) { by_distance<Table, Owner>(total, x.columns(), program_of); });
    });
    if constexpr (attune::detail::has_entries<Op>) entries(to);
  }
  /// A table with a row for each distance. program_of(parts) sums over the pairs of each distance.
  template <class Table, class Owner, class ProgramOf>
  void by_distance(tensor<T> const& total, index_t width, ProgramOf const& program_of) const {
    if (p_.queries == 0 || p_.keys == 0) return;
    shape const e{p_.batch, p_.heads, p_.queries + p_.keys - 1, width};
    memory parts(exec_, e.size());
    tensor<T> const of_distances(parts.data(), e);
    launch(program_of(of_distances));
    for_each_task(exec_, total.extents().size(), gather_program<T, Op, Table, Owner>{call_.at, of_distances, total});
  }
  /// The tables that `bind` reads.
  void entries(dense_gradients<T>& to) const {
    for (operator_table const& x : listed_tables(op_.op)) {
      index_t const count = attune::detail::entries_of(x);
      if (count == 0) continue;
      with(to.tables[std::size_t(x.at->number())].values, [&](tensor<T> const& total) {
        memory parts(exec_, rows_of(count).size());
        tensor<T> const of_rows(parts.data(), rows_of(count));
        launch(entry_program<T, Op>{call_, of_rows, x.at->first_entry()});
        sum(of_rows, tensor<T>(total.data(), {total.extents().batch, total.extents().head, 1, count}));
      });
    }
  }
  template <class C, int Index, int N>
  void operand(dense_gradients<T>& to) {
    using x = operand_of<C, N>;
    if constexpr (x::side == operand_side::table) {
      using wanted = wanted_table<C, typename x::table_of>;
      table const& of = x::table_of::of(op_.op.template owner<Index>());
      gradient_array<T>& g = to.tables[std::size_t(of.number())].values;
      index_t const width = attune::detail::term_count<C>(p_, op_.op.template owner<Index>());
      with(g, [&](tensor<T> const& total) {
        if constexpr (x::place == table_place::of_distance) {
          by_distance<typename x::table_of, owner_of_contraction<Index>>(total, width, [&](tensor<T> const& parts) {
            return distance_program<T, Op, wanted, Index>{call_, parts, {}};
          });
        } else if constexpr (x::place == table_place::of_pair) {
          index_t const rows = of.rows(), size = p_.batch * p_.heads * rows * width;
          if (p_.queries == 0 || p_.keys == 0 || size == 0) return;
          index_t const most = (std::max)(index_t(1), pair_parts / size), queries = (p_.queries + most - 1) / most,
                        groups = (p_.queries + queries - 1) / queries;
          memory parts(exec_, groups * size);
          tensor<T> const of_groups(parts.data(), {p_.batch, p_.heads, groups, rows * width});
          launch(pair_table_program<T, Op, wanted, x, Index>{call_, of_groups, {}, rows, width, queries});
          shape const e = total.extents();
          sum(of_groups, tensor<T>(total.data(), {e.batch, e.head, 1, rows * width}));
        } else if constexpr (x::place == table_place::of_key) {
          shape const e{p_.batch, p_.heads, p_.keys, width};
          if (p_.queries == 0 || p_.keys == 0) return;
          memory parts(exec_, e.size());
          tensor<T> const of_keys(parts.data(), e);
          launch(key_program<T, Op, wanted, Index>{call_, of_keys, {}});
          sum(of_keys, total);
        } else {
          memory parts(exec_, rows_of(width).size());
          tensor<T> const of_rows(parts.data(), rows_of(width));
          launch(query_program<T, Op, wanted, Index>{call_, of_rows, {}});
          shape const e = total.extents();
          sum(of_rows, tensor<T>(total.data(), {e.batch, e.head, 1, width}));
        }
      });
    }
  }

  executor exec_;
  Op const& original_;
  settled<T, Policy, Op> op_;
  problem_shape p_;
  cotangents<Op, tensor<T const>> d_;
  numbers<row_record<T, Op>, Policy> records_;
  memory row_parameters_;
  gradient_call<T, Op> call_;
};

/// The gradients of the heads that an operator serves, in host memory. Every input with queries or keys, and every
/// table, computes the logits again.
/// Complexity:  about 4 (2 D + 2 Dv) flops per visible pair and 32 features of each.
/// Memory:      a few numbers per row, and for a table at most B H (Lq + Lk) of its rows. With a row for each pair:
///              2^24 numbers, or the table B H times if that is more; then fewer tasks run. An ordered sum needs two
///              numbers per pair of a query and a key and contraction.
template <class T, class Policy, class Op>
dense_gradients<T> vjp_rows(engine, thrust_executor<T, Policy> const& exec, Op const& op,
                            inputs<Op, tensor<T const>> const& in, problem_shape const& p,
                            cotangents<Op, tensor<T const>> const& d, heads_served const& serves) {
  return gradient_run<T, Policy, Op>(exec, op, in, p, d, serves)();
}

}  // namespace exec_thrust
}  // namespace attune
