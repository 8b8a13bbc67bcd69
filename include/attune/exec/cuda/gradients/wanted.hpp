// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Which gradients tiles have, and the errors for all others.
#pragma once

#include <numeric>
#include <string>

#include <attune/exec/cuda/gradients/facts.hpp>

namespace attune::exec_cuda {

/// The requested gradients of a call. Each has the shape of its input; an absent one is not computed.
template <class E>
using requested_gradients = attune::detail::gradient_views<E>;

/// A contraction with a table whose gradient tiles have: factors of features, or numbers of distances.
template <class C>
inline constexpr bool has_pulled_table =
    is_distance_table<C> || (is_prepared<C> && is_pulled<C> && !contraction::Rotary<C>);
template <class C>
struct pulled_table {
  using type = typename C::z::table_of;
};
template <class C>
  requires is_distance_table<C>
struct pulled_table<C> {
  using type = typename C::x::table_of;
};
/// Calls visit(table, contraction, its number, its number among the products) for these tables.
template <class Op, class Visit>
void for_each_pulled_table(Op const& op, Visit const& visit) {
  for_each_contraction(typename Op::contractions{}, [&](auto contraction, auto number, auto place) {
    using chosen = decltype(contraction);
    if constexpr (has_pulled_table<chosen>)
      visit(pulled_table<chosen>::type::of(op.template owner<decltype(number)::value>()), contraction, number, place);
  });
}

/// Throws where a gradient is requested that tiles do not have.
template <class Op, class E>
void check_wanted(Op const& op, requested_gradients<E> const& to) {
  auto const refuse = [](std::string const& name) {
    throw error(
        "vjp", "the gradient by " + name, "a tensor",
        "none: the tiles of `cuda` have gradients by values, gates, the inputs of products and distances, numbers of "
        "queries, keys and pairs, parameters, and tables of factors and distances; use thrust_on");
  };
  for_each_field([&]<field F>() {
    if (!to.of(F).absent() && !has_gradient<Op>(F)) refuse(name_of(F));
  });
  std::size_t n = 0;
  if constexpr (parameter_count<Op> != 0)
    for (operator_parameter const& x : listed_parameters(op))
      if (n < to.parameters.size() && !to.parameters[n++].absent() && !has_parameter_gradients<Op>) refuse(x.path());
  n = 0;
  if constexpr (table_count<Op> != 0)
    for (operator_table const& x : listed_tables(op)) {
      if (n >= to.tables.size() || to.tables[n++].absent()) continue;
      bool has = false;
      for_each_pulled_table(op, [&](table const& of, auto, auto, auto) { has = has || of.number() == x.at->number(); });
      if (!has || x.use == table_use::bind) refuse(x.path());
    }
}

/// How many heads tiles must tell apart: the heads of the numbers of keys, and every query head where query heads share
/// the gradients by pairs.
template <class Op, class E>
index_t heads_of_groups(Op const& op, inputs<Op, tensor<E const>> const& in, problem_shape const& p,
                        requested_gradients<E> const& to) {
  index_t heads = 1;
  for_each_contraction(typename Op::contractions{}, [&](auto contraction, auto, auto) {
    using chosen = decltype(contraction);
    if constexpr (is_number_of<operand_side::key, chosen> && contraction::Plain<chosen>)
      heads = std::lcm(heads, member<chosen::x::of>(in).extents().head);
    if constexpr (std::is_same_v<chosen, contraction::scalar_difference>)
      heads = std::lcm(heads, member<chosen::y::of>(in).extents().head);
    if constexpr (is_number_of<operand_side::pair, chosen> && !is_distance_table<chosen>) {
      tensor<E> const by = to.of(chosen::x::of);
      if (!by.absent() && by.extents().head < p.heads) heads = p.heads;
    }
  });
  for_each_pulled_table(op, [&](table const& of, auto contraction, auto, auto) {
    using chosen = decltype(contraction);
    index_t const of_table = of.extents().head;
    if constexpr (is_distance_table<chosen>)  // its gradient is a sum over heads
      if (!to.tables[std::size_t(of.number())].absent() && of_table < p.heads) heads = p.heads;
    if constexpr (is_distance<chosen>)  // keys have a metric for each of their heads
      if (of_table > 1) heads = p.heads;
  });
  return heads;
}

}  // namespace attune::exec_cuda
