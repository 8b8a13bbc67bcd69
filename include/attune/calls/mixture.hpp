// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   the extents and the gradients of a call whose heads run different operators
#pragma once

#include <string>
#include <utility>

#include <attune/exec/gradients.hpp>
#include <attune/exec/problem.hpp>
#include <attune/operators/mixture.hpp>

namespace attune::detail {

/// Runs the checks of every operator of the mixture, and checks the number of heads.
template <class... Ops, class View>
problem_shape checked_problem(char const* function, mixture_operator<Ops...> const& mixed,
                              inputs<mixture_operator<Ops...>, View> const& in, shape const& out,
                              memory_kind where = memory_kind::host) {
  if (mixed.heads != out.head)
    throw error(function, "which", text(mixed.heads, " entries"), text(out.head, ", one per head"));
  problem_shape p;
  for_each_operator(mixed, [&](auto const& op, index_t) {
    p = checked_problem(function, op, narrowed<std::remove_cvref_t<decltype(op)>>(in), out, where);
  });
  return p;
}

/// Adds the gradients of one operator to the gradients of a call of several. `prefix` goes before the paths of its
/// parameters and tables.
template <class T>
void add_gradients(dense_gradients<T>& to, dense_gradients<T> const& g, std::string const& prefix) {
  for (std::size_t f = 0; f < g.fields.size(); ++f)
    for (std::size_t n = 0; n < g.fields[f].values.size(); ++n)
      to.fields[f].values[n] = to.fields[f].values[n] + g.fields[f].values[n];
  for (auto x : g.parameters) to.parameters.push_back((x.path = prefix + x.path, std::move(x)));
  for (auto x : g.tables) to.tables.push_back((x.path = prefix + x.path, std::move(x)));
}

/// The gradients of all operators. of_operator(op, its inputs, its extents, its cotangents, its number) computes the
/// gradients of one operator, for its own heads. Paths of parameters and tables begin with the number of their
/// operator: "0.kernel.scale".
template <class T, class... Ops, class View, class OfOperator>
dense_gradients<T> gradients_of_operators(mixture_operator<Ops...> const& mixed,
                                          inputs<mixture_operator<Ops...>, View> const& in,
                                          cotangents<mixture_operator<Ops...>, View> const& d,
                                          OfOperator const& of_operator, memory_kind where = memory_kind::host) {
  shape const extents = output_shape(in);
  checked_problem("vjp", mixed, in, extents, where);
  dense_gradients<T> to;
  for_each_field([&]<field F>() {
    if constexpr (mixture_operator<Ops...>::uses(F)) to.of(F) = gradient_array<T>(member<F>(in).extents());
  });
  for_each_operator(mixed, [&](auto const& op, index_t number) {
    using part = std::remove_cvref_t<decltype(op)>;
    auto const own = narrowed<part>(in);
    auto const g = of_operator(op, own, checked_problem("vjp", op, own, extents, where), narrowed<part>(d), number);
    add_gradients(to, g, std::to_string(number) + ".");
  });
  return to;
}

}  // namespace attune::detail
