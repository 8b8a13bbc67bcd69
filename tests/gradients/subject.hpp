// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// An operator on a problem behind functions of run-time type: each operator is compiled once, the checks know only
// numbers.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <attune/exec/reference/directional.hpp>

#include "gradients/problem.hpp"
#include "instances/digits.hpp"

namespace attune::test {

using instances::digits;

/// Gradients by the name of their block, flat.
template <class T>
using gradients_by_block = std::map<std::string, std::vector<T>>;

/// <c, J t> and <J^T c, t>, and the sum of the magnitudes of what the second adds.
template <class T>
struct two_routes {
  T forward = T(0), backward = T(0), magnitude = T(0);
};

struct subject {
  std::string name;
  problem data;
  std::vector<std::string> still;  ///< blocks whose gradient is 0 by the mathematics
  std::function<digits(problem const&)> objective;
  std::function<gradients_by_block<digits>(problem const&)> gradient;
  std::function<gradients_by_block<double>(problem const&)> gradient_in_double;
  std::function<two_routes<digits>(problem const&, direction const&)> routes;
  std::function<two_routes<double>(problem const&, direction const&)> routes_in_double;
  std::function<gradients_by_block<digits>(problem const&, direction const&)> gradient_along;
};

/// The inputs of an operator from the blocks named like its fields, with their directions if View carries one.
template <class Op, class View, class Find>
inputs<Op, View> inputs_from(Find const& find) {
  auto const give = [&]<field F, class Unused>() -> detail::field_t<Op, F, View, Unused> {
    if constexpr (Op::uses(F))
      return find(name_of(F));
    else
      return {};
  };
#define ATTUNE_GIVE(name) .name = give.template operator()<field::name, detail::no_##name>()
  return {ATTUNE_GIVE(q),          ATTUNE_GIVE(k),           .v = find("v"),          ATTUNE_GIVE(gate_q),
          ATTUNE_GIVE(gate_k),     ATTUNE_GIVE(scores),      ATTUNE_GIVE(gates),      ATTUNE_GIVE(sort_q),
          ATTUNE_GIVE(sort_k),     ATTUNE_GIVE(position_q),  ATTUNE_GIVE(position_k), ATTUNE_GIVE(center),
          ATTUNE_GIVE(spread),     ATTUNE_GIVE(place),       ATTUNE_GIVE(bias),       ATTUNE_GIVE(key_bias),
          ATTUNE_GIVE(value_gate), ATTUNE_GIVE(output_gate), ATTUNE_GIVE(v0)};
#undef ATTUNE_GIVE
}
template <class Op>
inputs<Op, any_tensor> inputs_of(problem const& p) {
  return inputs_from<Op, any_tensor>([&](std::string const& name) { return any_tensor(p.at(name).view()); });
}
template <class Op>
inputs<Op, tangent_tensor> moving_inputs_of(problem const& p, direction const& t) {
  return inputs_from<Op, tangent_tensor>([&](std::string const& name) {
    return tangent_tensor(any_tensor(p.at(name).view()), any_tensor(t.numbers.at(name).view()));
  });
}

template <class Op, class View, class Give>
cotangents<Op, View> cotangents_from(Give const& give) {
  cotangents<Op, View> c;
  c.out = give(&problem::out, &direction::out);
  if constexpr (Op::has_lse) c.lse = give(&problem::lse, &direction::lse);
  if constexpr (Op::has_ground_weight) c.ground_weight = give(&problem::ground_weight, &direction::ground_weight);
  return c;
}
template <class Op>
cotangents<Op, any_tensor> cotangents_of(problem const& p) {
  return cotangents_from<Op, any_tensor>([&](auto of, auto) { return any_tensor((p.*of).view()); });
}

template <class Op>
policy_direction policy_direction_of(Op const& op, problem const& p, direction const& t) {
  policy_direction d;
  for (operator_parameter const& x : listed_parameters(op))
    if (std::string const name = p.block_of(x.path()); !name.empty())
      d.parameters.push_back({x.path(), t.numbers.at(name).view()});
  for (operator_table const& x : listed_tables(op)) d.tables.push_back({x.path(), t.numbers.at(x.path()).view()});
  return d;
}

/// Sorts gradients by the blocks they belong to.
template <class T>
gradients_by_block<T> by_block(dense_gradients<T> const& g, problem const& p) {
  gradients_by_block<T> to;
  for (int f = 0; f < int(field_count); ++f)
    if (std::string const name = name_of(field(f)); g.of(field(f)).extents.size() > 0) to[name] = g.of(field(f)).values;
  for (auto const& entry : p.numbers) {  // no structured binding: clang 14 captures none
    auto const& name = entry.first;
    auto const& b = entry.second;
    if (b.is == kind::number || b.is == kind::value) to[name] = g.parameter(name).values;
    if (b.is == kind::table) to[name] = g.table(name).values;
    if (b.is == kind::x) to[name] = g.projected(owner_of(name)).x.values;
    if (b.is == kind::weight) to[name] = g.projected(owner_of(name)).weight.values;
    if (b.is == kind::bias) to[name] = g.projected(owner_of(name)).bias.values;
  }
  return to;
}

/// Calls visit(cotangent, output) for every number that is put out; an lse of -inf (no mass at all) does not move.
template <class T, class U, class Visit>
void for_each_output(dense_result<U> const& r, problem const& p, T const&, Visit const& visit) {
  std::size_t row = 0;
  for (auto const& head : r.heads)
    for (index_t i = 0; i < p.queries; ++i, ++row) {
      for (index_t d = 0; d < p.value_width; ++d)
        visit(T(p.out.values[row * std::size_t(p.value_width) + std::size_t(d)]), head.out(i, d));
      if (head.lse.size() > 0 && head.lse(i) - head.lse(i) == U(T(0))) visit(T(p.lse.values[row]), head.lse(i));
      if (head.ground_weight.size() > 0) visit(T(p.ground_weight.values[row]), head.ground_weight(i));
    }
}

template <class T, class Op>
two_routes<T> two_routes_of(Op const& op, problem const& p, direction const& t) {
  two_routes<T> sum;
  auto const r = jvp(reference<T>{}, op, moving_inputs_of<Op>(p, t), policy_direction_of(op, p, t));
  for_each_output(r, p, T(0), [&](T const& c, dual<T, 1> const& y) { sum.forward = sum.forward + c * y.tangent[0]; });
  auto const g = by_block(vjp(reference<T>{}, op, inputs_of<Op>(p), cotangents_of<Op>(p)), p);
  for (auto const& entry : g) {  // no structured binding: clang 14 captures none
    auto const& name = entry.first;
    auto const& values = entry.second;
    block const& along = t.numbers.at(name);
    if (along.is == kind::x || along.is == kind::weight || along.is == kind::bias)
      continue;  // their value moves instead
    for (std::size_t n = 0; n < values.size(); ++n) {
      T const part = values[n] * T(along.values[n]);
      sum.backward = sum.backward + part;
      sum.magnitude = sum.magnitude + math::abs(part);
    }
  }
  return sum;
}

/// make(problem) composes the operator.
template <class Make>
subject subject_of(std::string name, problem p, Make make) {
  using op_type = decltype(make(p));
  subject s;
  s.name = std::move(name);
  s.data = std::move(p);
  s.objective = [make](problem const& at) {
    op_type const op = make(at);
    digits sum(0);
    for_each_output(forward(reference<digits>{}, op, inputs_of<op_type>(at)), at, digits(0),
                    [&](digits const& c, digits const& y) { sum += c * y; });
    return sum;
  };
  s.gradient = [make](problem const& at) {
    return by_block(vjp(reference<digits>{}, make(at), inputs_of<op_type>(at), cotangents_of<op_type>(at)), at);
  };
  s.gradient_in_double = [make](problem const& at) {
    return by_block(vjp(reference<double>{}, make(at), inputs_of<op_type>(at), cotangents_of<op_type>(at)), at);
  };
  s.routes = [make](problem const& at, direction const& t) { return two_routes_of<digits>(make(at), at, t); };
  s.routes_in_double = [make](problem const& at, direction const& t) { return two_routes_of<double>(make(at), at, t); };
  s.gradient_along = [make](problem const& at, direction const& t) {
    op_type const op = make(at);
    auto const c = cotangents_from<op_type, tangent_tensor>([&](auto of, auto along) {
      return tangent_tensor(any_tensor((at.*of).view()), any_tensor((t.*along).view()));
    });
    auto const g = by_block(
        jvp_of_vjp(reference<digits>{}, op, moving_inputs_of<op_type>(at, t), c, policy_direction_of(op, at, t)), at);
    gradients_by_block<digits> to;
    for (auto const& [block_name, values] : g)
      for (auto const& x : values) to[block_name].push_back(x.tangent[0]);
    return to;
  };
  return s;
}

}  // namespace attune::test
