// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The sums of folds on the CPU, and what calls of folds and mixtures ask of an engine (calls/composite.hpp).
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include <attune/calls/composite.hpp>
#include <attune/exec/cpu/executor.hpp>
#include <attune/exec/cpu/threads.hpp>
#include <attune/exec/materialized.hpp>

namespace attune::exec_cpu {

/// The coefficients of a fold, computed once per call. Not copyable: they point into this object.
template <Fold Op>
class fixed_coefficients {
 public:
  explicit fixed_coefficients(Op const& folded) : at_(folded.coefficients) {
    for (parameter& x : at_) values_.freeze(x);
  }
  fixed_coefficients(fixed_coefficients const&) = delete;
  fixed_coefficients& operator=(fixed_coefficients const&) = delete;
  /// Coefficient c of row (b, h, i), rounded to T.
  template <class T>
  T value(index_t c, index_t b, index_t h, index_t i) const {
    return T(at_[std::size_t(c)].at(b, h, i));
  }

 private:
  std::array<parameter, std::size_t(Op::terms)> at_;
  attune::detail::computed_values values_;
};

/// Calls run(b, h, i, scratch of `features` numbers) for every row of `out`, on all threads.
template <class T, class Exec, class Run>
void for_each_row(Exec const& exec, shape const& out, index_t features, Run const& run) {
  constexpr index_t block = 64;
  index_t const blocks = (out.position + block - 1) / block;
  parallel(exec, out.batch * out.head * blocks, [&] {
    return [&, scratch = std::vector<T>(std::size_t(features))](index_t task) mutable {
      index_t const first = task % blocks * block, row = task / blocks;
      for (index_t i = first; i < (std::min)(first + block, out.position); ++i)
        run(row / out.head, row % out.head, i, scratch.data());
    };
  });
}

/// Rows of a fold's outputs whose queries follow one another: row `row` has the position `query`.
struct query_run {
  index_t query, row, rows;
};
/// The rows that a call computes. A call alone computes all of them, and a row is its query.
using query_runs = std::span<query_run const>;

/// Calls run(b, h, query, row, scratch of `features` numbers) for these rows of `out`, on all threads.
template <class T, class Exec, class Run>
void for_each_query(Exec const& exec, shape out, query_runs rows, index_t features, Run const& run) {
  for (query_run const& r : rows) {
    out.position = r.rows;
    for_each_row<T>(exec, out, features,
                    [&](index_t b, index_t h, index_t i, T* scratch) { run(b, h, r.query + i, r.row + i, scratch); });
  }
}

/// sum = sum_c c_c term_c of row i, whose query is `query` of the whole problem. The loop over features does not depend
/// on the layout of `out`, so its bits do not either.
template <class T, Fold Op, class Terms>
ATTUNE_NOINLINE void add_terms(T* ATTUNE_RESTRICT sum, fixed_coefficients<Op> const& coefficients, Terms const& terms,
                               index_t features, index_t b, index_t h, index_t i, index_t query) {
  for (index_t c = 0; c < Op::terms; ++c) {
    T const x = coefficients.template value<T>(c, b, h, query);
    T const* ATTUNE_RESTRICT const from = terms[std::size_t(c)].row(b, h, i);
    if (c == 0)
      for (index_t d = 0; d < features; ++d) sum[d] = x * from[d];
    else
      for (index_t d = 0; d < features; ++d) sum[d] += x * from[d];
  }
}

/// out = sum_c c_c term_c. The features of terms are contiguous. `S`: the type of `out`, rounded once.
template <class T, class Exec, Fold Op, class Terms, class S>
void fold_terms(Exec const& exec, Op const& folded, Terms const& terms, tensor<S> const& out, query_runs rows) {
  fixed_coefficients<Op> const coefficients(folded);
  index_t const features = out.extents().feature, step = out.steps().feature;
  for_each_query<T>(exec, out.extents(), rows, features, [&](index_t b, index_t h, index_t query, index_t i, T* sum) {
    add_terms(sum, coefficients, terms, features, b, h, i, query);
    S* const to = out.row(b, h, i);
    for (index_t d = 0; d < features; ++d) to[d * step] = S(sum[d]);
  });
}

/// Writes the cotangents of all terms, c_c d out. Returns <d out, O_c> of every row of every term, in double, in the
/// order (c, b, h, i).
template <class T, class Arch, Fold Op>
std::vector<double> spread_terms(cpu<T, Arch> const& exec, Op const& folded,
                                 attune::detail::fold_layout<Op> const& layout, T const* terms,
                                 tensor<T const> const& by_out, T* spread, query_runs rows) {
  fixed_coefficients<Op> const coefficients(folded);
  auto const all = layout.all_terms(terms);
  auto const by_terms = layout.all_terms(spread);
  index_t const count = layout.rows().size(), step = by_out.steps().feature;
  std::vector<double> products(std::size_t(Op::terms * count));
  for_each_query<T>(exec, layout.out, rows, 0, [&](index_t b, index_t h, index_t query, index_t i, T*) {
    T const* const from = by_out.row(b, h, i);
    for (index_t c = 0; c < Op::terms; ++c) {
      T const x = coefficients.template value<T>(c, b, h, query);
      T* const to = by_terms[std::size_t(c)].row(b, h, i);
      for (index_t d = 0; d < layout.out.feature; ++d) to[d] = x * from[d * step];
    }
    for (index_t c = 0; c < Op::terms; ++c) {
      double sum = 0;
      for (index_t d = 0; d < layout.out.feature; ++d)
        sum += double(by_out(b, h, i, d)) * double(all[std::size_t(c)](b, h, i, d));
      products[std::size_t(c * count + layout.row(b, h, i))] = sum;
    }
  });
  return products;
}

template <class Exec, class T>
std::vector<T> numbers_for(engine, Exec const&, index_t n, T) {
  return std::vector<T>(std::size_t(n));
}
template <class Exec, Fold Op, class T, class S>
void add_terms(engine, Exec const& exec, Op const& folded, attune::detail::fold_layout<Op> const& layout,
               T const* terms, tensor<S> const& out) {
  query_run const every_row{0, 0, out.extents().position};
  fold_terms<T>(exec, folded, layout.all_terms(terms), out, {&every_row, 1});
}
template <class T, class Arch, Fold Op>
std::vector<double> spread_terms(engine, cpu<T, Arch> const& exec, Op const& folded,
                                 attune::detail::fold_layout<Op> const& layout, T const* terms,
                                 tensor<T const> const& by_out, T* spread) {
  query_run const every_row{0, 0, layout.out.position};
  return spread_terms(exec, folded, layout, terms, by_out, spread, query_runs(&every_row, 1));
}
template <class Exec, class T>
void fill_rows(engine, Exec const&, problem_shape const& p, attune::detail::heads_served const& serves,
               tensor<T> const& to, T value) {
  for (index_t b = 0; b < p.batch; ++b)
    for (index_t h = 0; h < p.heads; ++h)
      for (index_t i = 0; i < p.queries && serves(h); ++i) to(b, h, i, 0) = value;
}

}  // namespace attune::exec_cpu
