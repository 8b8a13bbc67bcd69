// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The sums of folds on Thrust, and what calls of folds and mixtures ask of an engine (calls/composite.hpp).
#pragma once

#include <array>
#include <vector>

#include <attune/calls/composite.hpp>
#include <attune/exec/thrust/backward.hpp>

namespace attune::exec_thrust {

/// Adds one term to a stretch of `out`, or writes it if it is the first: out = sum + c term. One program per term, so
/// the number of terms has no limit.
template <class T>
struct add_term_program {
  problem_shape p;  ///< extents of `out`
  parameter coefficient;
  tensor<T const> term;
  tensor<T> to;
  bool first;

  ATTUNE_HD index_t tasks() const { return row_task::count(p, stretches(p.value_width)); }
  ATTUNE_HD ATTUNE_PROGRAM void operator()(index_t n) const {
    row_task const t(n, p, stretches(p.value_width));
    T const c = T(coefficient.at(t.b, t.h, t.i));
    index_t const begin = t.piece * stretch;
    for (index_t d = begin; d < begin + stretch && d < p.value_width; ++d) {
      T const x = c * term(t.b, t.h, t.i, d);
      to(t.b, t.h, t.i, d) = first ? x : T(to(t.b, t.h, t.i, d) + x);
    }
  }
};

/// The cotangent of one term, c d out, and of the coefficient in one row, <d out, term>.
template <class T>
struct spread_program {
  problem_shape p;  ///< extents of `out`
  parameter coefficient;
  tensor<T const> by_out, term;
  tensor<T> by_term;
  tensor<double> product;

  ATTUNE_HD ATTUNE_PROGRAM void operator()(index_t n) const {
    row_task const t(n, p, 1);
    T const c = T(coefficient.at(t.b, t.h, t.i));
    double sum = 0;
    for (index_t d = 0; d < p.value_width; ++d) {
      T const by = by_out(t.b, t.h, t.i, d);
      sum += double(by) * double(term(t.b, t.h, t.i, d));
      by_term(t.b, t.h, t.i, d) = c * by;
    }
    product(t.b, t.h, t.i, 0) = sum;
  }
};

/// Fills an output for the heads of an operator that does not have it.
template <class T>
struct fill_program {
  problem_shape p;
  heads_served serves;
  tensor<T> to;
  T value;
  ATTUNE_HD ATTUNE_PROGRAM void operator()(index_t n) const {
    row_task const t(n, p, 1);
    if (serves(t.h)) to(t.b, t.h, t.i, 0) = value;
  }
};

/// The coefficients of a fold, settled for the programs of a policy. Not copyable: they point into this object.
template <class T, class Policy, Fold Op>
struct settled_coefficients {
  std::array<parameter, std::size_t(Op::terms)> at;
  settled_averages<T, Policy> averages;
  problem_shape p;  ///< extents of `out`

  settled_coefficients(thrust_executor<T, Policy> const& exec, Op const& folded, shape const& out)
      : at(folded.coefficients) {
    p.batch = out.batch, p.heads = out.head, p.queries = out.position, p.value_width = out.feature;
    for (parameter& x : at) averages.settle(exec, x);
  }
  settled_coefficients(settled_coefficients const&) = delete;
  settled_coefficients& operator=(settled_coefficients const&) = delete;
};

template <class T, class Policy>
numbers<T, Policy> numbers_for(engine, thrust_executor<T, Policy> const& exec, index_t n, T) {
  return numbers<T, Policy>(exec, n);
}
template <class T, class Policy, Fold Op>
void add_terms(engine, thrust_executor<T, Policy> const& exec, Op const& folded,
               attune::detail::fold_layout<Op> const& layout, T const* terms, tensor<T> const& out) {
  settled_coefficients<T, Policy, Op> const fixed(exec, folded, layout.out);
  for (index_t c = 0; c < Op::terms; ++c) {
    add_term_program<T> const program{fixed.p, fixed.at[std::size_t(c)], layout.term(terms, c), out, c == 0};
    for_each_task(exec, program.tasks(), program);
  }
}
template <class T, class Policy, Fold Op>
std::vector<double> spread_terms(engine, thrust_executor<T, Policy> const& exec, Op const& folded,
                                 attune::detail::fold_layout<Op> const& layout, T const* terms,
                                 tensor<T const> const& by_out, T* spread) {
  settled_coefficients<T, Policy, Op> const fixed(exec, folded, layout.out);
  index_t const rows = layout.rows().size();
  numbers<double, Policy> products(exec, Op::terms * rows);
  for (index_t c = 0; c < Op::terms; ++c)
    for_each_task(exec, rows,
                  spread_program<T>{fixed.p,
                                    fixed.at[std::size_t(c)],
                                    by_out,
                                    layout.term(terms, c),
                                    layout.term(spread, c),
                                    {products.data() + c * rows, layout.rows()}});
  return products.copied();
}
template <class T, class Policy>
void fill_rows(engine, thrust_executor<T, Policy> const& exec, problem_shape const& p, heads_served const& serves,
               tensor<T> const& to, T value) {
  for_each_task(exec, row_task::count(p, 1), fill_program<T>{p, serves, to, value});
}

}  // namespace attune::exec_thrust
