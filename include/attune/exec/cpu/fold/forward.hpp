// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   forward(cpu{}, fold(inner, {1.0, minus_lambda}), inputs, outputs)
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include <attune/exec/cpu/threads.hpp>
#include <attune/exec/cpu/tile/forward.hpp>
#include <attune/exec/cpu/tile/split.hpp>
#include <attune/exec/cpu/tile/stored.hpp>
#include <attune/exec/fold.hpp>
#include <attune/exec/materialized.hpp>

namespace attune {

namespace exec_cpu {

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

/// Computes the outputs of all operators of a fold, and then `out`. run(operator, its inputs, its output, its number)
/// writes the output of one operator in T.
template <class T, class Exec, Fold Op, class View, class S, class Run>
void fold_forward(char const* function, Exec const& exec, Op const& folded, inputs<Op, View> const& in,
                  tensor<S> const& out, std::vector<T>& memory, Run const& run) {
  auto const layout = attune::detail::checked_fold(function, folded, in, out.extents());
  attune::detail::require_distinct(function, "out", out);
  memory.resize(std::size_t(layout.size()));
  attune::detail::for_each_operator(folded, [&](auto const& op, index_t number, std::string const&) {
    using part = std::remove_cvref_t<decltype(op)>;
    run(op, attune::detail::narrowed<part>(in), outputs<part, T>{.out = layout.operator_at(memory.data(), number)},
        number);
  });
  exec_cpu::fold_terms<T>(exec, folded, layout.all_terms(memory.data()), out);
}

}  // namespace exec_cpu

/// Evaluates each operator of a fold and adds the terms with their coefficients.
/// Memory:      the outputs of all terms: B H Lq Dv numbers of T per coefficient.
/// Determinism: as for a single operator. A fold with the only coefficient 1 has the bits of its operator.
/// Everything else is as for a single operator.
template <class T, class Arch, Fold Op>
  requires(!storage_only<T>)
void forward(cpu<T, Arch> exec, Op const& folded, inputs<Op, tensor<T const>> const& in, outputs<Op, T> const& out) {
  std::vector<T> memory;
  exec_cpu::fold_forward("forward", exec, folded, in, out.out, memory,
                         [&](auto const& op, auto const& own, auto const& to, index_t) { forward(exec, op, own, to); });
}

/// The same for 16-bit tensors. Terms and their sum are floats, and `out` is rounded once.
template <storage_only S, class Arch, Fold Op>
void forward(cpu<S, Arch> exec, Op const& folded, inputs<Op, tensor<S const>> const& in, outputs<Op, S> const& out) {
  std::vector<float> memory;
  exec_cpu::fold_forward("forward", exec, folded, in, out.out, memory,
                         [&]<class Part>(Part const& op, auto const& own, outputs<Part, float> const& to, index_t) {
                           problem_shape const p = detail::checked_problem("forward", op, own, to.out.extents());
                           exec_cpu::stored_run<tensor<S const>, float, Arch, Part>(exec_cpu::of_floats(exec), op, own,
                                                                                    p, to)();
                         });
}

/// The states of a fold of one operator are the states of its operator, with all heads. merge() them and call finish().
template <class T, class Arch, Fold Op>
states_of<T, detail::only_operator<Op>> accumulate(cpu<T, Arch> exec, Op const& folded,
                                                   inputs<Op, tensor<T const>> const& in, key_interval keys) {
  detail::require_one_operator<Op>();
  detail::checked_fold("accumulate", folded, in, detail::folded_shape("accumulate", in));
  return accumulate(exec, std::get<0>(folded.operators), detail::narrowed<detail::only_operator<Op>>(in), keys);
}

}  // namespace attune
