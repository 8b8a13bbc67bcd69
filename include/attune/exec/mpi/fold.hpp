// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   forward(on_ranks(ranks, cpu{}), fold(op, {1.0, minus_lambda}), inputs, outputs)
//
// The operators of a fold run over ranks, one after the other. Each rank adds the terms of the rows that it has.
#pragma once

#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <attune/exec/cpu/composite.hpp>
#include <attune/exec/mpi/decode.hpp>
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

/// vjp() of a fold over ranks.
template <class T, class Arch, Fold Op>
dense_gradients<T> gradients_of_fold(across_ranks<cpu<T, Arch>> const& exec, Op const& folded,
                                     inputs<Op, tensor<T const>> const& in, rows_of_rank<T, Op> const& saved,
                                     cotangents<Op, tensor<T const>> const& d, divided_fold<T, Op> const& call) {
  bool const given = !d.out.absent();
  auto const each_row = [&](auto const& run) {
    call.for_each_row(exec.each, [&](index_t b, index_t h, index_t query, index_t row, T*) { run(b, h, query, row); });
  };
  std::vector<T> spread;
  std::vector<double> products;
  reach_all(exec.ranks, "vjp", [&] {  // the user's threads may throw
    if (!given) return;
    spread.resize(std::size_t(call.layout.size()));
    exec_cpu::spread_cotangent(each_row, folded, call.layout, d.out, spread.data());
    products = exec_cpu::products_of_terms(each_row, call.layout, saved.terms.data(), d.out);
  });
  return attune::detail::gradients_of_fold<double, T>(
      folded, in,
      [&](index_t c, gradient_array<double>& sums) {
        for (row_window const& w : call.windows) {
          shape rows = call.layout.out;
          rows.position = given ? w.p.row_count() : 0;
          attune::detail::add_rows_of_coefficient(sums, rows, w.p.first_query, [&](index_t b, index_t h, index_t i) {
            return products[std::size_t(c * call.layout.rows().size() + call.layout.row(b, h, w.local + i))];
          });
        }
        exec.ranks.sum(std::span<double>(sums.values));
      },
      [&](auto const& op, auto number) {
        using part = std::remove_cvref_t<decltype(op)>;
        cotangents<part, tensor<T const>> by;
        if (given) by.out = call.layout.template operator_at<T const>(spread.data(), number);
        return vjp(exec, op, attune::detail::narrowed<part>(in), std::get<number()>(saved.rows), by);
      });
}

/// decode() of all operators of a fold over ranks, by run(operator, its inputs, its output). Then the ranks that answer
/// add the terms. `in`: the inputs with all keys of this rank in one piece.
template <class T, class Arch, Fold Op, class Run>
void decode_fold(across_ranks<cpu<T, Arch>> const& exec, Op const& folded, inputs<Op, tensor<T const>> const& in,
                 tensor<T> const& out, answer_on answer, index_t page, Run const& run) {
  using first_operator = std::tuple_element_t<0, decltype(Op::operators)>;
  bool const answers = answer.includes(exec.ranks.rank());
  auto const layout = reach_all(exec.ranks, "decode", [&] {
    if (answers) attune::detail::require_distinct("decode", "out", out);
    return attune::detail::checked_fold("decode", folded, in, out.extents());
  });
  decoded_call<T>(exec, std::get<0>(folded.operators), attune::detail::narrowed<first_operator>(in),
                  layout.of_operator(), answer, page,
                  [&](call_facts& facts) { facts.add_operator(folded, "the fold"); });
  std::vector<T> terms(std::size_t(layout.size()));
  attune::detail::for_each_operator(folded, [&](auto const& op, index_t number, std::string const&) {
    using part = std::remove_cvref_t<decltype(op)>;
    run(op, outputs<part, T>{.out = layout.operator_at(terms.data(), number)});
  });
  if (answers) exec_cpu::fold_terms<T>(exec.each, folded, layout.all_terms(terms.data()), out);
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

/// decode() of a fold over ranks. Everything else is as for its operators, which are decoded one after the other.
/// Memory: also the outputs of the terms, on every rank.
template <class T, class Arch, Fold Op>
void decode(across_ranks<cpu<T, Arch>> const& exec, Op const& folded, inputs<Op, tensor<T const>> const& in,
            outputs<Op, T> const& out, answer_on answer = answer_on::every_rank()) {
  exec_mpi::decode_fold(exec, folded, in, out.out, answer, 0, [&]<class Part>(Part const& op, auto const& to) {
    decode(exec, op, detail::narrowed<Part>(in), to, answer);
  });
}
/// The same from a cache in pages.
template <class T, class Arch, Fold Op>
void decode(across_ranks<cpu<T, Arch>> const& exec, Op const& folded, inputs<Op, tensor<T const>> const& in,
            page_table const& pages, outputs<Op, T> const& out, answer_on answer = answer_on::every_rank()) {
  inputs<Op, tensor<T const>> one_piece = in;  // clang 14 does not compile an optional of inputs
  mpi::reach_all(exec.ranks, "decode", [&] { one_piece = detail::in_one_piece(in, pages); });
  exec_mpi::decode_fold(exec, folded, one_piece, out.out, answer, in.v.extents().position,
                        [&]<class Part>(Part const& op, auto const& to) {
                          decode(exec, op, detail::narrowed<Part>(in), pages, to, answer);
                        });
}

/// Does not compile: a fold has no statistics.
template <class T, class Arch, Fold Op>
void statistics(across_ranks<cpu<T, Arch>> const&, Op const&, inputs<Op, tensor<T const>> const&,
                rows_of_rank<T, Op> const&, statistics_request const& = {}) {
  static_cast<void>(detail::offered<call_kind::statistics, across_ranks<cpu<T, Arch>>, Op>());
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
  return exec_mpi::gradients_of_fold(exec, folded, in, saved, d, call);
}
/// Overload that runs the forward pass itself.
template <class T, class Arch, Fold Op>
dense_gradients<T> vjp(across_ranks<cpu<T, Arch>> const& exec, Op const& folded, inputs<Op, tensor<T const>> const& in,
                       cotangents<Op, tensor<T const>> const& d) {
  exec_mpi::divided_fold<T, Op> const call(
      "vjp", exec, folded, in, mpi::reach_all(exec.ranks, "vjp", [&] { return detail::folded_shape("vjp", in); }));
  return vjp(exec, folded, in, exec_mpi::save_fold("vjp", exec, folded, in, call), d);
}

/// The same gradients, of the inputs, coefficients, parameters and tables that `to` names, in the caller's memory. All
/// are computed.
template <class T, class Arch, Fold Op>
void vjp(across_ranks<cpu<T, Arch>> const& exec, Op const& folded, inputs<Op, tensor<T const>> const& in,
         rows_of_rank<T, Op> const& saved, cotangents<Op, tensor<T const>> const& d,
         gradient_outputs<Op, T> const& to) {
  mpi::reach_all(exec.ranks, "vjp", [&] { detail::views_of(to, folded, in); });
  detail::copy_gradients(vjp(exec, folded, in, saved, d), folded, in, to);
}
/// Overload that runs the forward pass itself.
template <class T, class Arch, Fold Op>
void vjp(across_ranks<cpu<T, Arch>> const& exec, Op const& folded, inputs<Op, tensor<T const>> const& in,
         cotangents<Op, tensor<T const>> const& d, gradient_outputs<Op, T> const& to) {
  mpi::reach_all(exec.ranks, "vjp", [&] { detail::views_of(to, folded, in); });
  detail::copy_gradients(vjp(exec, folded, in, d), folded, in, to);
}

}  // namespace attune
