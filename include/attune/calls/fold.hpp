// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   out_h = sum_c c_c O_c,h      d O_c,h = c_c d out_h      d c_c = <d out_h, O_c,h>
//
// The parts of a fold that executors share: checks, the memory of the terms O_c, gradients of the coefficients.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <attune/calls/mixture.hpp>
#include <attune/exec/direction.hpp>
#include <attune/exec/saved.hpp>
#include <attune/operators/fold.hpp>

namespace attune {

/// The result of forward_and_save() of a fold: the saved rows of its operators, and the outputs of all terms, B H Lq Dv
/// numbers per term.
template <class T, class Op>
struct saved_fold;
template <class T, std::size_t N, class... Ops>
struct saved_fold<T, fold_operator<N, Ops...>> {
  shape extents{0, 0, 0, 0};               ///< (B, H, Lq, Dv) of `out`
  std::tuple<saved_rows<T, Ops>...> rows;  ///< of each operator
  std::vector<T> terms;                    ///< the outputs of the terms, in the order of detail::fold_layout
};

/// How many numbers forward_and_save() of a fold keeps of a call with these inputs.
template <Fold Op, class View>
index_t saved_size(Op const& folded, inputs<Op, View> const& in);

namespace detail {

/// Where the outputs of a fold's operators lie in one array: dense, one operator after the other.
template <Fold Op>
struct fold_layout {
  shape out;  ///< (B, H, Lq, Dv)

  index_t size() const { return Op::terms * out.size(); }
  shape rows() const { return {out.batch, out.head, out.position, 1}; }
  /// The number of a row of `out`.
  index_t row(index_t b, index_t h, index_t i) const { return (b * out.head + h) * out.position + i; }
  /// The extents of the output of one operator.
  shape of_operator() const { return {out.batch, Op::heads_each * out.head, out.position, out.feature}; }
  /// The output of operator number n.
  template <class E>
  tensor<E> operator_at(E* values, index_t n) const {
    return {values + n * of_operator().size(), of_operator()};
  }
  /// Term c, (B, H, Lq, Dv), in the output of its operator.
  template <class E>
  tensor<E> term_of(E* output, index_t c) const {
    strides s = strides::dense(of_operator());
    E* const first = output + c % Op::heads_each * s.head;
    s.head *= Op::heads_each;
    return {first, out, s};
  }
  /// Term c in the array.
  template <class E>
  tensor<E> term(E* values, index_t c) const {
    return term_of(values + c / Op::heads_each * of_operator().size(), c);
  }
  /// All terms in the array.
  template <class E>
  auto all_terms(E* values) const {
    std::array<tensor<E>, std::size_t(Op::terms)> terms;
    for (index_t c = 0; c < Op::terms; ++c) terms[std::size_t(c)] = term(values, c);
    return terms;
  }
};

/// Checks the coefficients of a fold and the heads of its query inputs. The checks of its operators check everything
/// else.
template <Fold Op, class View>
fold_layout<Op> checked_fold(char const* function, Op const& folded, inputs<Op, View> const& in, shape const& out,
                             memory_kind where = memory_kind::host) {
  for_each_field([&]<field F>() {
    if constexpr (Op::uses(F) && side_of(F) == input_side::query && F != field::output_gate)
      require_extent(function, name_of(F), "head", member<F>(in).extents().head, Op::heads_each * out.head,
                     Op::heads_each == 1
                         ? std::string("the heads of out")
                         : text("the fold's ", Op::heads_each, " terms of ", out.head, " heads of out"));
  });
  for (index_t c = 0; c < Op::terms; ++c) {
    parameter const& x = folded.coefficients[std::size_t(c)];
    std::string const name = "fold." + names_of_coefficients<Op>()[std::size_t(c)];
    if (!x.is_set()) throw error(function, text("parameter ", name), "no value", "a number, or a view of numbers");
    check_parameter<typename element_of<View>::type>(function, name, x, domain::real, out.batch, out.head, out.position,
                                                     where);
  }
  return {out};
}

/// The extents (B, H, Lq, Dv) of `out`, from the inputs.
template <Fold Op, class View>
shape folded_shape(char const* function, inputs<Op, View> const& in) {
  shape s = output_shape(in);
  if (s.head % Op::heads_each != 0)
    throw error(function, "the query inputs", text("head extent ", s.head),
                text("a multiple of ", Op::heads_each, ", the terms of the fold"));
  s.head /= Op::heads_each;
  return s;
}

template <Fold Op, class View>
void check_folded_cotangent(cotangents<Op, View> const& d, shape const& out) {
  if (!d.out.absent()) require_shape("vjp", "the gradient of out", d.out.extents(), out, ", the shape of the output");
}

/// Adds by_row(b, h, i) = <d out, O_c> of the rows of `out` to the sums of a coefficient. Row i is query first + i.
template <class S, class ByRow>
void add_rows_of_coefficient(gradient_array<S>& sums, shape const& out, index_t first, ByRow const& by_row) {
  for (index_t b = 0; b < out.batch; ++b)
    for (index_t h = 0; h < out.head; ++h)
      for (index_t i = 0; i < out.position; ++i) {
        S& sum = sums(b, h, first + i, 0);
        sum = sum + by_row(b, h, i);
      }
}
/// The gradient of a coefficient from its sums.
template <class T, class S>
parameter_gradient<T> gradient_of_coefficient(parameter const& coefficient, std::string const& name,
                                              gradient_array<S> const& sums, memory_kind where) {
  parameter_gradient<T> to;
  to.path = "fold." + name;
  to.values = gradient_array<T>(sums.extents);
  for (std::size_t n = 0; n < sums.values.size(); ++n) to.values.values[n] = T(sums.values[n]);
  if (where == memory_kind::host) pull_projection(coefficient, to);  // else the sources cannot be read here
  return to;
}

/// How many numbers a saved_fold of a call is.
template <Fold Op, class View>
index_t saved_size_of_fold(char const* function, Op const& folded, inputs<Op, View> const& in, shape const& out) {
  auto const layout = checked_fold(function, folded, in, out);
  index_t sum = layout.size();
  for_each_operator(folded, [&](auto const& op, index_t, std::string const&) {
    using part = std::remove_cvref_t<decltype(op)>;
    sum += saved_size<double, part>(checked_problem(function, op, narrowed<part>(in), layout.of_operator()));
  });
  return sum;
}
/// Calls f(an array, its length) for every array of a saved_fold, in their order in one piece of memory.
template <class Saved, class F>
void each_array_of_fold(Saved& saved, F const& f) {
  std::apply([&](auto&... rows) { (std::remove_reference_t<decltype(rows)>::each_array(rows, f), ...); }, saved.rows);
  f(saved.terms, index_t(saved.terms.size()));
}

/// Throws unless the caller's memory for saved numbers has their size.
ATTUNE_NOINLINE inline void require_size(char const* function, std::size_t given, index_t size) {
  if (index_t(given) != size)
    throw error(function, "memory", text("a span of ", given, " numbers"), text(size, ", as saved_size() says"));
}
/// The saved rows that forward_and_save() of a fold wrote to the caller's memory.
template <class T, Fold Op, class View>
saved_fold<T, Op> saved_fold_in(Op const& folded, inputs<Op, View> const& in, std::span<T const> saved) {
  shape const out = folded_shape("vjp", in);
  auto const layout = checked_fold("vjp", folded, in, out);
  require_size("vjp", saved.size(), saved_size_of_fold("vjp", folded, in, out));
  saved_fold<T, Op> all{.extents = out, .rows = {}, .terms = std::vector<T>(std::size_t(layout.size()))};
  for_each_operator(folded, [&](auto const& op, auto number, std::string const&) {
    using part = std::remove_cvref_t<decltype(op)>;
    std::get<number()>(all.rows) =
        saved_rows<T, part>(op, checked_problem("vjp", op, narrowed<part>(in), layout.of_operator()));
  });
  each_array_of_fold(all, [&](std::vector<T>& x, index_t n) {
    std::copy_n(saved.begin(), n, x.begin());
    saved = saved.subspan(std::size_t(n));
  });
  return all;
}

/// All gradients of a fold. add_rows(c, sums) adds <d out, O_c> of all rows, in S; of_operator(operator, number)
/// returns the gradients of one operator for its part of the cotangents.
template <class S, class T, Fold Op, class View, class AddRows, class OfOperator>
dense_gradients<T> gradients_of_fold(Op const& folded, inputs<Op, View> const& in, AddRows const& add_rows,
                                     OfOperator const& of_operator, memory_kind where = memory_kind::host) {
  dense_gradients<T> to;
  for_each_field([&]<field F>() {
    if constexpr (Op::uses(F)) to.of(F) = gradient_array<T>(member<F>(in).extents());
  });
  for (index_t c = 0; c < Op::terms; ++c) {
    parameter const& coefficient = folded.coefficients[std::size_t(c)];
    gradient_array<S> sums(coefficient.extents());
    add_rows(c, sums);
    to.parameters.push_back(
        gradient_of_coefficient<T>(coefficient, names_of_coefficients<Op>()[std::size_t(c)], sums, where));
  }
  for_each_operator(folded, [&](auto const& op, auto number, std::string const& prefix) {
    add_gradients(to, of_operator(op, number), prefix);
  });
  return to;
}

/// Copies the gradients that the caller requested to its memory.
template <Fold Op, class T, class View>
void copy_gradients(dense_gradients<T> const& g, Op const& folded, inputs<Op, View> const& in,
                    gradient_outputs<Op, T> const& wanted) {
  auto const to = views_of(wanted, folded, in);
  auto const copy = [](gradient_array<T> const& from, tensor<T> const& x) {
    shape const& e = x.extents();
    for (index_t b = 0; b < e.batch; ++b)
      for (index_t h = 0; h < e.head; ++h)
        for (index_t i = 0; i < e.position; ++i)
          for (index_t d = 0; d < e.feature; ++d) x(b, h, i, d) = from(b, h, i, d);
  };
  for (std::size_t n = 0; n < to.fields.size(); ++n)
    if (!to.fields[n].absent()) copy(g.fields[n], to.fields[n]);
  for (std::size_t n = 0; n < to.parameters.size(); ++n)
    if (!to.parameters[n].absent()) copy(g.parameters[n].values, to.parameters[n]);
  for (std::size_t n = 0; n < to.tables.size(); ++n)
    if (!to.tables[n].absent()) copy(g.tables[n].values, to.tables[n]);
}

/// The direction of a fold's parameters and tables: of its coefficients, and of each operator.
template <Fold Op>
struct folded_direction {
  std::array<parameter, std::size_t(Op::terms)> coefficients;  ///< unset for those that do not move
  std::vector<policy_direction> operators;

  folded_direction(Op const& folded, policy_direction const& direction) {
    std::vector<bool> used_parameters(direction.parameters.size()), used_tables(direction.tables.size());
    for (std::size_t c = 0; c < coefficients.size(); ++c)
      for (std::size_t n = 0; n < direction.parameters.size(); ++n) {
        auto const& [name, along] = direction.parameters[n];
        std::string const path = "fold." + names_of_coefficients<Op>()[c];
        if (!is_called(path, name)) continue;
        shape const needed = folded.coefficients[c].extents(), got = along.extents();
        if (!(got == needed) && got.size() != 1)
          throw error("jvp", text("the direction of parameter ", path), text("shape ", to_string(got)),
                      text(to_string(needed), ", the shape of the parameter, or one number"));
        coefficients[c] = along;
        used_parameters[n] = true;
      }
    for_each_operator(folded, [&](auto const& op, index_t, std::string const& prefix) {
      policy_direction own;
      auto const take = [&](auto const& listed, auto const& from, auto& to, std::vector<bool>& used) {
        for (auto const& x : listed)
          for (std::size_t n = 0; n < from.size(); ++n)
            if (is_called(prefix + x.path(), from[n].name)) to.push_back({x.path(), from[n].along}), used[n] = true;
      };
      take(listed_parameters(op), direction.parameters, own.parameters, used_parameters);
      take(listed_tables(op), direction.tables, own.tables, used_tables);
      operators.push_back(std::move(own));
    });
    for (std::size_t n = 0; n < used_parameters.size(); ++n)
      if (!used_parameters[n])
        throw error("jvp", "direction.parameters", text("the name ", direction.parameters[n].name),
                    "a parameter of the operator");
    for (std::size_t n = 0; n < used_tables.size(); ++n)
      if (!used_tables[n])
        throw error("jvp", "direction.tables", text("the name ", direction.tables[n].name), "a table of the operator");
  }
};

/// Rejects calls that only the fold of one operator has.
template <Fold Op>
constexpr void require_one_operator() {
  static_assert(std::tuple_size_v<decltype(Op::operators)> == 1,
                "attune: states of a fold of several operators do not exist: accumulate() the states of each operator, "
                "finish() each, and add the outputs");
}
template <Fold Op>
using only_operator = std::tuple_element_t<0, decltype(Op::operators)>;

}  // namespace detail

template <Fold Op, class View>
index_t saved_size(Op const& folded, inputs<Op, View> const& in) {
  return detail::saved_size_of_fold("saved_size", folded, in, detail::folded_shape("saved_size", in));
}

/// Divides the merged states of a fold of one operator and adds the terms. The states have N H heads.
/// Memory: the outputs of all terms.
template <class Exec, Fold Op>
void finish(Exec const&, Op const& folded, inputs<Op, typename Exec::view> const& in,
            states_of<typename Exec::value_type, detail::only_operator<Op>> const& states,
            outputs<Op, typename Exec::value_type> const& to) {
  detail::require_one_operator<Op>();
  using T = typename Exec::value_type;
  using part = detail::only_operator<Op>;
  auto const layout = detail::checked_fold("finish", folded, in, to.out.extents());
  detail::require_distinct("finish", "out", to.out);
  std::vector<T> memory(std::size_t(layout.size()));
  outputs<part, T> const own{.out = layout.operator_at(memory.data(), 0)};
  finish<T>(std::get<0>(folded.operators), detail::narrowed<part>(in), states, own);
  for (index_t b = 0; b < layout.out.batch; ++b)
    for (index_t h = 0; h < layout.out.head; ++h)
      for (index_t i = 0; i < layout.out.position; ++i)
        for (index_t d = 0; d < layout.out.feature; ++d) {
          T sum(0);
          for (index_t c = 0; c < Op::terms; ++c) {
            T const x = folded.coefficients[std::size_t(c)].template value<T>(b, h, i) *
                        layout.term(memory.data(), c)(b, h, i, d);
            sum = c == 0 ? x : T(sum + x);
          }
          to.out(b, h, i, d) = sum;
        }
}

}  // namespace attune
