// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The sums of folds on the CPU, and what calls of folds and mixtures ask of an engine (calls/composite.hpp).
#pragma once

#include <algorithm>
#include <array>
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
void fold_terms(Exec const& exec, Op const& folded, Terms const& terms, tensor<S> const& out) {
  fixed_coefficients<Op> const coefficients(folded);
  index_t const features = out.extents().feature, step = out.steps().feature;
  for_each_row<T>(exec, out.extents(), features, [&](index_t b, index_t h, index_t i, T* sum) {
    add_terms(sum, coefficients, terms, features, b, h, i, i);
    S* const to = out.row(b, h, i);
    for (index_t d = 0; d < features; ++d) to[d * step] = S(sum[d]);
  });
}

/// Returns a function that calls run(b, h, query, row) for every row of a fold's outputs, on all threads. Here a row is
/// its query. The function refers to `exec`.
template <class T, class Arch>
auto rows_of_fold(cpu<T, Arch> const& exec, shape const& out) {
  return [&exec, out](auto const& run) {
    for_each_row<T>(exec, out, 0, [&](index_t b, index_t h, index_t i, T*) { run(b, h, i, i); });
  };
}

/// Writes the cotangents of all terms, c_c d out. each_row: as rows_of_fold() makes it.
template <class T, Fold Op, class EachRow>
void spread_cotangent(EachRow const& each_row, Op const& folded, attune::detail::fold_layout<Op> const& layout,
                      tensor<T const> const& by_out, T* spread) {
  fixed_coefficients<Op> const coefficients(folded);
  auto const terms = layout.all_terms(spread);
  index_t const step = by_out.steps().feature;
  each_row([&](index_t b, index_t h, index_t query, index_t i) {
    T const* const from = by_out.row(b, h, i);
    for (index_t c = 0; c < Op::terms; ++c) {
      T const x = coefficients.template value<T>(c, b, h, query);
      T* const to = terms[std::size_t(c)].row(b, h, i);
      for (index_t d = 0; d < layout.out.feature; ++d) to[d] = x * from[d * step];
    }
  });
}

/// <d out, O_c> of every row of every term, in double, in the order (c, b, h, i).
template <class T, Fold Op, class EachRow>
std::vector<double> products_of_terms(EachRow const& each_row, attune::detail::fold_layout<Op> const& layout,
                                      T const* terms, tensor<T const> const& by_out) {
  auto const all = layout.all_terms(terms);
  index_t const rows = layout.rows().size();
  std::vector<double> to(std::size_t(Op::terms * rows));
  each_row([&](index_t b, index_t h, index_t, index_t i) {
    for (index_t c = 0; c < Op::terms; ++c) {
      double sum = 0;
      for (index_t d = 0; d < layout.out.feature; ++d)
        sum += double(by_out(b, h, i, d)) * double(all[std::size_t(c)](b, h, i, d));
      to[std::size_t(c * rows + layout.row(b, h, i))] = sum;
    }
  });
  return to;
}

template <class Exec, class T>
std::vector<T> numbers_for(engine, Exec const&, index_t n, T) {
  return std::vector<T>(std::size_t(n));
}
template <class Exec, Fold Op, class T, class S>
void add_terms(engine, Exec const& exec, Op const& folded, attune::detail::fold_layout<Op> const& layout,
               T const* terms, tensor<S> const& out) {
  fold_terms<T>(exec, folded, layout.all_terms(terms), out);
}
template <class T, class Arch, Fold Op>
std::vector<double> spread_terms(engine, cpu<T, Arch> const& exec, Op const& folded,
                                 attune::detail::fold_layout<Op> const& layout, T const* terms,
                                 tensor<T const> const& by_out, T* spread) {
  auto const each_row = rows_of_fold(exec, layout.out);
  spread_cotangent(each_row, folded, layout, by_out, spread);
  return products_of_terms(each_row, layout, terms, by_out);
}
template <class Exec, class T>
void fill_rows(engine, Exec const&, problem_shape const& p, attune::detail::heads_served const& serves,
               tensor<T> const& to, T value) {
  for (index_t b = 0; b < p.batch; ++b)
    for (index_t h = 0; h < p.heads; ++h)
      for (index_t i = 0; i < p.queries && serves(h); ++i) to(b, h, i, 0) = value;
}

}  // namespace attune::exec_cpu
