// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Folds and mixtures over ranks. Their operators run one after the other; each rank adds the terms of its rows.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <attune/calls/mixture.hpp>
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
  std::vector<exec_cpu::query_run> rows;   ///< all rows of this rank

  /// out: the extents (B, H, own queries, Dv) of `out`. Throws the same attune::error on all ranks.
  template <class Exec>
  divided_fold(collective_call<Exec>& all, Op const& folded, inputs<Op, tensor<T const>> const& in, shape const& out)
      : layout{out} {
    auto const own = attune::detail::narrowed<first_operator>(in);
    divided_call<T, first_operator> const call(all, std::get<0>(folded.operators), own, layout.of_operator(),
                                               [&](call_facts& facts) { facts.add_operator(folded, "the fold"); });
    all.agreed([&] {
      shape whole = out;
      whole.position = call.queries.positions();
      attune::detail::checked_fold(all.function(), folded, in, whole);
    });
    for (row_window const& w : call.windows(call.me)) rows.push_back({w.p.first_query, w.local, w.p.row_count()});
  }
};

/// forward() of all operators of a fold over ranks.
template <class T, class Arch, Fold Op>
rows_of_rank<T, Op> save_fold(collective_call<cpu<T, Arch>>& all, Op const& folded,
                              inputs<Op, tensor<T const>> const& in, divided_fold<T, Op> const& call) {
  rows_of_rank<T, Op> saved{
      .extents = call.layout.out, .rows = {}, .terms = std::vector<T>(std::size_t(call.layout.size()))};
  attune::detail::for_each_operator(folded, [&](auto const& op, auto number, std::string const&) {
    using part = std::remove_cvref_t<decltype(op)>;
    outputs<part, T> const to{.out = call.layout.operator_at(saved.terms.data(), number)};
    std::get<number()>(saved.rows) = rows_of_heads<T>(all, op, attune::detail::narrowed<part>(in), to.out.extents(),
                                                      &to, heads_served{}, no_more_facts);
  });
  return saved;
}

/// The gradients of a fold from its saved rows.
template <class T, class Arch, Fold Op>
dense_gradients<T> pull_fold(collective_call<cpu<T, Arch>>& all, Op const& folded,
                             inputs<Op, tensor<T const>> const& in, rows_of_rank<T, Op> const& saved,
                             cotangents<Op, tensor<T const>> const& d, divided_fold<T, Op> const& call) {
  bool const given = !d.out.absent();
  std::vector<T> spread;
  std::vector<double> products;
  all.agreed([&] {  // the user's threads may throw
    if (!given) return;
    spread.resize(std::size_t(call.layout.size()));
    products =
        exec_cpu::spread_terms(all.each, folded, call.layout, saved.terms.data(), d.out, spread.data(), call.rows);
  });
  return attune::detail::gradients_of_fold<double, T>(
      folded, in,
      [&](index_t c, gradient_array<double>& sums) {
        for (auto const& r : call.rows) {
          shape rows = call.layout.out;
          rows.position = given ? r.rows : 0;
          attune::detail::add_rows_of_coefficient(sums, rows, r.query, [&](index_t b, index_t h, index_t i) {
            return products[std::size_t(c * call.layout.rows().size() + call.layout.row(b, h, r.row + i))];
          });
        }
        all.sum(std::span<double>(sums.values));
      },
      [&](auto const& op, auto number) {
        using part = std::remove_cvref_t<decltype(op)>;
        cotangents<part, tensor<T const>> by;
        if (given) by.out = call.layout.template operator_at<T const>(spread.data(), number);
        return gradients_of_heads<T>(all, op, attune::detail::narrowed<part>(in), std::get<number()>(saved.rows), by,
                                     heads_served{}, no_more_facts);
      });
}

/// forward() of a fold. Memory: the outputs of the terms.
template <class T, class Arch, Fold Op>
void forward_of_fold(collective_call<cpu<T, Arch>>& all, Op const& folded, inputs<Op, tensor<T const>> const& in,
                     outputs<Op, T> const& out) {
  divided_fold<T, Op> const call(all, folded, in, out.out.extents());
  std::vector<T> terms;
  all.agreed([&] {
    attune::detail::require_distinct("forward", "out", out.out);
    terms.resize(std::size_t(call.layout.size()));
  });
  attune::detail::for_each_operator(folded, [&](auto const& op, index_t number, std::string const&) {
    using part = std::remove_cvref_t<decltype(op)>;
    outputs<part, T> const to{.out = call.layout.operator_at(terms.data(), number)};
    forward_of_heads(all, op, attune::detail::narrowed<part>(in), to, heads_served{}, no_more_facts);
  });
  all.local(
      [&] { exec_cpu::fold_terms<T>(all.each, folded, call.layout.all_terms(terms.data()), out.out, call.rows); });
}
/// forward_and_save() of a fold.
template <class T, class Arch, Fold Op>
rows_of_rank<T, Op> save_of_fold(collective_call<cpu<T, Arch>>& all, Op const& folded,
                                 inputs<Op, tensor<T const>> const& in, outputs<Op, T> const& out) {
  divided_fold<T, Op> const call(all, folded, in, out.out.extents());
  all.agreed([&] { attune::detail::require_distinct(all.function(), "out", out.out); });
  auto saved = save_fold(all, folded, in, call);
  all.local([&] {
    exec_cpu::fold_terms<T>(all.each, folded, call.layout.all_terms(saved.terms.data()), out.out, call.rows);
  });
  return saved;
}
/// vjp() of a fold. saved: null to run the forward pass too.
template <class T, class Arch, Fold Op>
dense_gradients<T> gradients_of_fold(collective_call<cpu<T, Arch>>& all, Op const& folded,
                                     inputs<Op, tensor<T const>> const& in, rows_of_rank<T, Op> const* saved,
                                     cotangents<Op, tensor<T const>> const& d) {
  divided_fold<T, Op> const call(all, folded, in, all.agreed([&] { return attune::detail::folded_shape("vjp", in); }));
  rows_of_rank<T, Op> own;
  if (saved == nullptr) own = save_fold(all, folded, in, call);
  rows_of_rank<T, Op> const& rows = saved != nullptr ? *saved : own;
  all.agreed([&] {
    attune::detail::require_shape("vjp", "saved", rows.extents, call.layout.out, ", the shape of out");
    attune::detail::check_folded_cotangent(d, call.layout.out);
  });
  return pull_fold(all, folded, in, rows, d, call);
}
/// The same in the caller's memory: copies the gradients that it requested. All are computed.
template <class T, class Arch, Fold Op>
void write_fold(collective_call<cpu<T, Arch>>& all, Op const& folded, inputs<Op, tensor<T const>> const& in,
                rows_of_rank<T, Op> const* saved, cotangents<Op, tensor<T const>> const& d,
                gradient_outputs<Op, T> const& to) {
  all.agreed([&] { attune::detail::views_of(to, folded, in); });
  auto const computed = gradients_of_fold(all, folded, in, saved, d);
  all.local([&] { attune::detail::copy_gradients(computed, folded, in, to); });
}

/// decode() of all operators of a fold over ranks, by run(operator, its inputs, its output). Then the ranks that answer
/// add the terms. `in`: the inputs with all keys of this rank in one piece.
template <class T, class Arch, Fold Op, class Run>
void decode_fold(collective_call<cpu<T, Arch>>& all, Op const& folded, inputs<Op, tensor<T const>> const& in,
                 tensor<T> const& out, answer_on answer, index_t page, Run const& run) {
  using first_operator = std::tuple_element_t<0, decltype(Op::operators)>;
  bool const answers = answer.includes(all.rank());
  auto const layout = all.agreed([&] {
    if (answers) attune::detail::require_distinct("decode", "out", out);
    return attune::detail::checked_fold("decode", folded, in, out.extents());
  });
  decoded_call<T>(all, std::get<0>(folded.operators), attune::detail::narrowed<first_operator>(in),
                  layout.of_operator(), answer, page,
                  [&](call_facts& facts) { facts.add_operator(folded, "the fold"); });
  std::vector<T> terms(std::size_t(layout.size()));
  attune::detail::for_each_operator(folded, [&](auto const& op, index_t number, std::string const&) {
    using part = std::remove_cvref_t<decltype(op)>;
    run(op, outputs<part, T>{.out = layout.operator_at(terms.data(), number)});
  });
  exec_cpu::query_run const every_row{0, 0, out.extents().position};
  all.local([&] {
    if (answers) exec_cpu::fold_terms<T>(all.each, folded, layout.all_terms(terms.data()), out, {&every_row, 1});
  });
}

/// The facts about a mixture that its operators do not have.
template <class... Ops>
auto facts_of(mixture_operator<Ops...> const& mixed) {
  return [&mixed](call_facts& facts) {
    std::string which;
    for (index_t h = 0; h < mixed.heads; ++h) which += (h == 0 ? "" : " ") + std::to_string(mixed.which[h]);
    facts.add("which", "the numbers", std::string_view(which));
  };
}
template <class... Ops>
void check_heads(collective& all, mixture_operator<Ops...> const& mixed, index_t heads) {
  all.agreed([&] {
    if (mixed.heads != heads)
      throw error(all.function(), "which", attune::detail::text(mixed.heads, " entries"),
                  attune::detail::text(heads, ", one per head"));
  });
}

/// forward() of a mixture over ranks.
template <class T, class Arch, class... Ops>
void forward_of_mixture(collective_call<cpu<T, Arch>>& all, mixture_operator<Ops...> const& mixed,
                        inputs<mixture_operator<Ops...>, tensor<T const>> const& in,
                        outputs<mixture_operator<Ops...>, T> const& out) {
  using whole = mixture_operator<Ops...>;
  shape const e = out.out.extents();
  check_heads(all, mixed, e.head);
  attune::detail::for_each_operator(mixed, [&](auto const& op, index_t number) {
    using part = std::remove_cvref_t<decltype(op)>;
    heads_served const runs{mixed.which, number};
    forward_of_heads<T>(all, op, attune::detail::narrowed<part>(in), attune::detail::narrowed<part>(out), runs,
                        facts_of(mixed));
    auto const fill = [&](tensor<T> const& to, T value) {
      if (to.absent()) return;
      for (index_t b = 0; b < e.batch; ++b)
        for (index_t h = 0; h < e.head; ++h)
          for (index_t i = 0; i < e.position && runs(h); ++i) to(b, h, i, 0) = value;
    };
    if constexpr (whole::has_ground_weight && !part::has_ground_weight) fill(out.ground_weight, T(0));
    if constexpr (whole::has_threshold && !part::has_threshold)
      fill(out.threshold, std::numeric_limits<T>::quiet_NaN());
  });
}

/// vjp() of a mixture over ranks. Paths of parameters and tables begin with the number of their operator:
/// "0.kernel.scale".
template <class T, class Arch, class... Ops>
dense_gradients<T> gradients_of_mixture(collective_call<cpu<T, Arch>>& all, mixture_operator<Ops...> const& mixed,
                                        inputs<mixture_operator<Ops...>, tensor<T const>> const& in,
                                        cotangents<mixture_operator<Ops...>, tensor<T const>> const& d) {
  shape const rows = d.out.absent() ? attune::detail::output_shape(in) : d.out.extents();
  check_heads(all, mixed, rows.head);
  dense_gradients<T> to;
  for_each_field([&]<field F>() {
    if constexpr (mixture_operator<Ops...>::uses(F)) to.of(F) = gradient_array<T>(member<F>(in).extents());
  });
  attune::detail::for_each_operator(mixed, [&](auto const& op, index_t number) {
    using part = std::remove_cvref_t<decltype(op)>;
    heads_served const runs{mixed.which, number};
    auto const own = attune::detail::narrowed<part>(in);
    auto const by = attune::detail::narrowed<part>(d);
    auto const saved = rows_for_vjp(all, op, own, by, runs, facts_of(mixed));
    auto const more = gradients_of_heads<T>(all, op, own, saved, by, runs, facts_of(mixed));
    all.local([&] { attune::detail::add_gradients(to, more, std::to_string(number) + "."); });
  });
  return to;
}

}  // namespace exec_mpi
}  // namespace attune
