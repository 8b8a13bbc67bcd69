// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   forward(on_ranks(ranks, cpu{}), fold(op, {1.0, minus_lambda}), inputs, outputs)
//
// The operators of a fold run over ranks, one after the other. Each rank adds the terms of the rows that it has.
#pragma once

#include <algorithm>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <attune/exec/cpu/fold/gradients.hpp>
#include <attune/exec/mpi/gradients.hpp>

namespace attune {

/// The saved rows of a fold on one rank, and the outputs of all terms.
template <class T, std::size_t N, class... Ops>
struct rows_of_rank<T, fold_operator<N, Ops...>> {
  shape extents{0, 0, 0, 0};                 ///< (B, H, own queries, Dv) of `out`
  std::tuple<rows_of_rank<T, Ops>...> rows;  ///< of each operator
  std::vector<T> terms;                      ///< the outputs of the terms, in the order of detail::fold_layout
};

namespace exec_mpi {

/// The rows of a rank in a call of a fold. The first operator of the fold compares them on all ranks.
template <class T, Fold Op>
class divided_fold {
  using first_operator = std::tuple_element_t<0, decltype(Op::operators)>;

 public:
  attune::detail::fold_layout<Op> layout;  ///< of the rows of this rank
  std::vector<row_window> windows;         ///< of the first operator

  /// rows: (B, H, own queries, Dv) of `out`. Throws the same attune::error on all ranks.
  template <class Exec>
  divided_fold(char const* function, across_ranks<Exec> const& exec, Op const& folded,
               inputs<Op, tensor<T const>> const& in, shape const& rows)
      : layout{rows} {
    auto const own = attune::detail::narrowed<first_operator>(in);
    divided_call<T, first_operator> const call(function, exec, std::get<0>(folded.operators), own, layout.of_operator(),
                                               [&](call_facts& facts) { facts.add_operator(folded, "the fold"); });
    reach_all(exec.ranks, function, [&] {
      shape whole = rows;
      whole.position = call.queries.positions();
      attune::detail::checked_fold(function, folded, in, whole);
    });
    windows = call.windows(exec.ranks.rank());
  }

  /// Calls f(b, h, position of the query, local row, scratch of Dv numbers) for the rows of this rank, on all threads.
  template <class Exec, class F>
  void for_each_row(Exec const& exec, F const& f) const {
    for (row_window const& w : windows) {
      shape const rows{layout.out.batch, layout.out.head, w.p.row_count(), 1};
      exec_cpu::for_each_row<T>(exec, rows, layout.out.feature, [&](index_t b, index_t h, index_t i, T* scratch) {
        f(b, h, w.p.first_query + i, w.local + i, scratch);
      });
    }
  }
  /// out = sum_c c_c term_c.
  template <class Exec>
  void add_terms(Exec const& exec, Op const& folded, std::vector<T> const& values, tensor<T> const& out) const {
    exec_cpu::fixed_coefficients<Op> const coefficients(folded);
    auto const terms = layout.all_terms(values.data());
    for_each_row(exec, [&](index_t b, index_t h, index_t query, index_t row, T* sum) {
      exec_cpu::add_terms(sum, coefficients, terms, layout.out.feature, b, h, row, query);
      for (index_t d = 0; d < layout.out.feature; ++d) out(b, h, row, d) = sum[d];
    });
  }
};

/// forward() of all operators of a fold over ranks.
template <class T, class Arch, Fold Op>
rows_of_rank<T, Op> save_fold(char const* function, across_ranks<cpu<T, Arch>> const& exec, Op const& folded,
                              inputs<Op, tensor<T const>> const& in, divided_fold<T, Op> const& call) {
  rows_of_rank<T, Op> all{
      .extents = call.layout.out, .rows = {}, .terms = std::vector<T>(std::size_t(call.layout.size()))};
  attune::detail::for_each_operator(folded, [&](auto const& op, auto number, std::string const&) {
    using part = std::remove_cvref_t<decltype(op)>;
    outputs<part, T> const to{.out = call.layout.operator_at(all.terms.data(), number)};
    std::get<number()>(all.rows) = rows_of_heads<T>(function, exec, op, attune::detail::narrowed<part>(in),
                                                    to.out.extents(), &to, every_head, no_more_facts);
  });
  return all;
}

/// The gradients of the coefficients of a fold: sums over the rows of all ranks.
template <class T, class Exec, Fold Op>
void add_coefficients(Exec const& exec, communicator const& ranks, Op const& folded, divided_fold<T, Op> const& call,
                      std::vector<T> const& values, tensor<T const> const& by_out, dense_gradients<T>& to) {
  index_t const rows = call.layout.out.batch * call.layout.out.head * call.layout.out.position;
  std::vector<double> products(std::size_t(Op::terms * rows), 0.0);
  auto const at = [&](index_t c, index_t b, index_t h, index_t i) {
    shape const& e = call.layout.out;
    return std::size_t(((c * e.batch + b) * e.head + h) * e.position + i);
  };
  auto const terms = call.layout.all_terms(values.data());
  if (!by_out.absent())
    call.for_each_row(exec, [&](index_t b, index_t h, index_t, index_t row, T*) {
      for (index_t c = 0; c < Op::terms; ++c) {
        double sum = 0;
        for (index_t d = 0; d < call.layout.out.feature; ++d)
          sum += double(by_out(b, h, row, d)) * double(terms[std::size_t(c)](b, h, row, d));
        products[at(c, b, h, row)] = sum;
      }
    });
  for (index_t c = 0; c < Op::terms; ++c) {
    parameter const& coefficient = folded.coefficients[std::size_t(c)];
    gradient_array<double> sums(coefficient.extents());
    for (row_window const& w : call.windows)
      for (index_t b = 0; b < call.layout.out.batch; ++b)
        for (index_t h = 0; h < call.layout.out.head; ++h)
          for (index_t i = 0; i < w.p.row_count(); ++i)
            sums(b, h, w.p.first_query + i, 0) += products[at(c, b, h, w.local + i)];
    ranks.sum(std::span<double>(sums.values));
    parameter_gradient<T> g;
    g.path = "fold." + attune::detail::names_of_coefficients<Op>()[std::size_t(c)];
    g.values = gradient_array<T>(sums.extents);
    std::transform(sums.values.begin(), sums.values.end(), g.values.values.begin(), [](double x) { return T(x); });
    attune::detail::pull_projection(coefficient, g);
    to.parameters.push_back(std::move(g));
  }
}

}  // namespace exec_mpi

/// forward() of a fold over ranks. Memory: the outputs of the terms.
template <class T, class Arch, Fold Op>
void forward(across_ranks<cpu<T, Arch>> const& exec, Op const& folded, inputs<Op, tensor<T const>> const& in,
             outputs<Op, T> const& out) {
  exec_mpi::divided_fold<T, Op> const call("forward", exec, folded, in, out.out.extents());
  mpi::reach_all(exec.ranks, "forward", [&] { detail::require_distinct("forward", "out", out.out); });
  std::vector<T> terms(std::size_t(call.layout.size()));
  detail::for_each_operator(folded, [&](auto const& op, index_t number, std::string const&) {
    using part = std::remove_cvref_t<decltype(op)>;
    forward(exec, op, detail::narrowed<part>(in), {.out = call.layout.operator_at(terms.data(), number)});
  });
  call.add_terms(exec.each, folded, terms, out.out);
}

/// forward() of a fold over ranks, which also returns what vjp() needs of this rank's rows.
template <class T, class Arch, Fold Op>
rows_of_rank<T, Op> forward_and_save(across_ranks<cpu<T, Arch>> const& exec, Op const& folded,
                                     inputs<Op, tensor<T const>> const& in, outputs<Op, T> const& out) {
  exec_mpi::divided_fold<T, Op> const call("forward_and_save", exec, folded, in, out.out.extents());
  mpi::reach_all(exec.ranks, "forward_and_save", [&] { detail::require_distinct("forward_and_save", "out", out.out); });
  auto all = exec_mpi::save_fold("forward_and_save", exec, folded, in, call);
  call.add_terms(exec.each, folded, all.terms, out.out);
  return all;
}

/// vjp() of a fold over ranks.
template <class T, class Arch, Fold Op>
dense_gradients<T> vjp(across_ranks<cpu<T, Arch>> const& exec, Op const& folded, inputs<Op, tensor<T const>> const& in,
                       rows_of_rank<T, Op> const& saved, cotangents<Op, tensor<T const>> const& d) {
  exec_mpi::divided_fold<T, Op> const call(
      "vjp", exec, folded, in, mpi::reach_all(exec.ranks, "vjp", [&] { return detail::folded_shape("vjp", in); }));
  mpi::reach_all(exec.ranks, "vjp", [&] {
    detail::require_shape("vjp", "saved", saved.extents, call.layout.out, ", the shape of out");
    detail::check_folded_cotangent(d, call.layout.out);
  });
  bool const given = !d.out.absent();
  std::vector<T> spread(std::size_t(given ? call.layout.size() : 0));
  if (given) {
    exec_cpu::fixed_coefficients<Op> const coefficients(folded);
    auto const terms = call.layout.all_terms(spread.data());
    call.for_each_row(exec.each, [&](index_t b, index_t h, index_t query, index_t row, T*) {
      for (index_t c = 0; c < Op::terms; ++c) {
        T const x = coefficients.template value<T>(c, b, h, query);
        for (index_t f = 0; f < call.layout.out.feature; ++f)
          terms[std::size_t(c)](b, h, row, f) = x * d.out(b, h, row, f);
      }
    });
  }
  dense_gradients<T> to;
  for_each_field([&]<field F>() {
    if constexpr (Op::uses(F)) to.of(F) = gradient_array<T>(member<F>(in).extents());
  });
  exec_mpi::add_coefficients<T>(exec.each, exec.ranks, folded, call, saved.terms, d.out, to);
  detail::for_each_operator(folded, [&](auto const& op, auto number, std::string const& prefix) {
    using part = std::remove_cvref_t<decltype(op)>;
    cotangents<part, tensor<T const>> by;
    if (given) by.out = call.layout.template operator_at<T const>(spread.data(), number);
    detail::add_gradients(to, vjp(exec, op, detail::narrowed<part>(in), std::get<number()>(saved.rows), by), prefix);
  });
  return to;
}
/// Overload that runs the forward pass itself.
template <class T, class Arch, Fold Op>
dense_gradients<T> vjp(across_ranks<cpu<T, Arch>> const& exec, Op const& folded, inputs<Op, tensor<T const>> const& in,
                       cotangents<Op, tensor<T const>> const& d) {
  exec_mpi::divided_fold<T, Op> const call(
      "vjp", exec, folded, in, mpi::reach_all(exec.ranks, "vjp", [&] { return detail::folded_shape("vjp", in); }));
  return vjp(exec, folded, in, exec_mpi::save_fold("vjp", exec, folded, in, call), d);
}

}  // namespace attune
