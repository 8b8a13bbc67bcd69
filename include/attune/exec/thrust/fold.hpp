// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   forward(thrust_on(policy), fold(inner, {1.0, minus_lambda}), inputs, outputs)      vjp(...) likewise
#pragma once

#include <utility>
#include <vector>

#include <attune/exec/fold.hpp>
#include <attune/exec/thrust/backward.hpp>

namespace attune {

namespace exec_thrust {

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

/// A fold on Thrust: the outputs of its terms in memory where programs run, and its coefficients.
template <class T, class Policy, Fold Op>
class fold_run {
  using executor = thrust_executor<T, Policy>;
  using memory = numbers<T, Policy>;

 public:
  fold_run(char const* function, executor const& exec, Op const& folded, inputs<Op, tensor<T const>> const& in,
           shape const& out)
      : function_(function), exec_(exec), folded_(folded), in_(in),
        layout_(attune::detail::checked_fold(function, folded, in, out, exec.memory)), terms_(exec, layout_.size()),
        coefficients_(folded.coefficients) {
    p_.batch = out.batch, p_.heads = out.head, p_.queries = out.position, p_.value_width = out.feature;
    for (parameter& x : coefficients_) averages_.settle(exec, x);
  }
  fold_run(fold_run const&) = delete;  // the coefficients point into this object
  fold_run& operator=(fold_run const&) = delete;

  shape const& out() const { return layout_.out; }

  /// Computes the outputs of all operators.
  void evaluate() {
    attune::detail::for_each_operator(folded_, [&](auto const& op, index_t number, std::string const&) {
      using part = std::remove_cvref_t<decltype(op)>;
      auto const own = attune::detail::narrowed<part>(in_);
      forward_rows(exec_, op, own, extents(op, own),
                   outputs<part, T>{.out = layout_.operator_at(terms_.data(), number)});
    });
  }
  /// to = sum_c c_c term_c.
  void add(tensor<T> const& to) {
    for (index_t c = 0; c < Op::terms; ++c) {
      add_term_program<T> const program{p_, coefficients_[std::size_t(c)], layout_.term(terms_.data(), c), to, c == 0};
      for_each_task(exec_, program.tasks(), program);
    }
  }
  /// The gradients, after evaluate().
  dense_gradients<T> gradients(cotangents<Op, tensor<T const>> const& d) {
    attune::detail::check_folded_cotangent(d, layout_.out);
    bool const given = !d.out.absent();
    index_t const rows = row_task::count(p_, 1);
    memory spread(exec_, given ? layout_.size() : 0);
    numbers<double, Policy> products(exec_, given ? Op::terms * rows : 0);
    for (index_t c = 0; c < Op::terms && given; ++c)
      for_each_task(exec_, rows,
                    spread_program<T>{p_,
                                      coefficients_[std::size_t(c)],
                                      d.out,
                                      layout_.term(terms_.data(), c),
                                      layout_.term(spread.data(), c),
                                      {products.data() + c * rows, {p_.batch, p_.heads, p_.queries, 1}}});
    std::vector<double> const of_rows = products.copied();
    return attune::detail::gradients_of_fold<double, T>(
        folded_, in_,
        [&](index_t c, gradient_array<double>& sums) {
          if (given)
            attune::detail::add_rows_of_coefficient(sums, layout_.out, 0, [&](index_t b, index_t h, index_t i) {
              return of_rows[std::size_t(((c * p_.batch + b) * p_.heads + h) * p_.queries + i)];
            });
        },
        [&](auto const& op, index_t number) {
          using part = std::remove_cvref_t<decltype(op)>;
          cotangents<part, tensor<T const>> by;
          if (given) by.out = layout_.operator_at(spread.data(), number);
          auto const own = attune::detail::narrowed<part>(in_);
          return vjp_rows(exec_, op, own, extents(op, own), by);
        },
        exec_.memory);
  }

 private:
  template <class Part, class Inputs>
  problem_shape extents(Part const& op, Inputs const& own) const {
    return attune::detail::checked_problem(function_, op, own, layout_.of_operator(), exec_.memory);
  }
  char const* function_;
  executor exec_;
  Op const& folded_;
  inputs<Op, tensor<T const>> const& in_;
  attune::detail::fold_layout<Op> layout_;
  memory terms_;
  std::array<parameter, std::size_t(Op::terms)> coefficients_;
  settled_averages<T, Policy> averages_;
  problem_shape p_;
};

}  // namespace exec_thrust

/// Evaluates each operator of a fold and adds the terms with their coefficients.
/// Memory: the outputs of all terms, where programs run. Everything else is as for a single operator.
template <class T, class Policy, Fold Op>
void forward(thrust_executor<T, Policy> const& exec, Op const& folded, inputs<Op, tensor<T const>> const& in,
             outputs<Op, T> const& out) {
  detail::require_distinct("forward", "out", out.out);
  exec_thrust::fold_run<T, Policy, Op> run("forward", exec, folded, in, out.out.extents());
  run.evaluate();
  run.add(out.out);
}

/// Gradients by every input, coefficient ("fold.0", ...), parameter and table, in host memory. Runs the forward pass
/// itself. Sources of a projected coefficient get their gradients where parameters are in host memory.
template <class T, class Policy, Fold Op>
dense_gradients<T> vjp(thrust_executor<T, Policy> const& exec, Op const& folded, inputs<Op, tensor<T const>> const& in,
                       cotangents<Op, tensor<T const>> const& d) {
  exec_thrust::fold_run<T, Policy, Op> run("vjp", exec, folded, in, detail::folded_shape("vjp", in));
  run.evaluate();
  return run.gradients(d);
}

/// Does not compile: Thrust saves rows for statistics(), which a fold does not have.
template <class T, class Policy, Fold Op>
void forward_and_save(thrust_executor<T, Policy> const&, Op const&, inputs<Op, tensor<T const>> const&,
                      outputs<Op, T> const&) {
  static_assert(detail::never<Op>,
                "attune: forward_and_save() on Thrust keeps rows for statistics(), which a fold does not have. Call "
                "forward() and vjp()");
}

}  // namespace attune
