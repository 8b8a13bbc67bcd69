// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   r = jvp(reference<T>{}, op, {.q = {Q, dQ}, .k = K, .v = V}, {{"gamma", 1.0}})       r.at(b, h).out(i, d).tangent[0]
//
// Directional derivatives: the same dense code, run on dual numbers from end to end. With jvp_of_vjp the gradients are
// differentiated once more.
#pragma once

#include <string>
#include <vector>

#include <attune/exec/reference/backward.hpp>
#include <attune/exec/reference/forward.hpp>

namespace attune {

/// The direction in which the parameters and tables of a call move, by name or path as in dense_gradients; what is not listed
/// stands still. A direction has the granularity of its parameter, or is one number.
struct policy_direction {
  struct of_parameter {
    std::string name;
    parameter along;
  };
  struct of_table {
    std::string name;
    table along;
  };
  std::vector<of_parameter> parameters = {};
  std::vector<of_table> tables = {};
};

namespace detail {

/// The addresses of what moves, and where to.
template <class T>
struct moving_numbers {
  std::vector<parameter const*> slots;
  std::vector<parameter> along;
  std::vector<table const*> tables;
  std::vector<table> tables_along;

  template <class Op>
  moving_numbers(Op const& op, policy_direction const& direction) {
    std::vector<bool> used_parameters(direction.parameters.size()), used_tables(direction.tables.size());
    for_each_parameter(op, [&](auto const& listed, auto const& policy, std::string const& path) {
      for (std::size_t n = 0; n < direction.parameters.size(); ++n)
        if (is_called(path, direction.parameters[n].name)) {
          shape const wanted = (policy.*listed.member).extents(), got = direction.parameters[n].along.extents();
          if (!(got == wanted) && got.size() != 1)
            throw error("jvp", "the direction of parameter " + path, "shape " + to_string(got),
                        to_string(wanted) + ", that of the parameter, or one number");
          slots.push_back(&(policy.*listed.member));
          along.push_back(direction.parameters[n].along);
          used_parameters[n] = true;
        }
    });
    for_each_table(op, [&](auto const& listed, auto const& policy, std::string const& path) {
      for (std::size_t n = 0; n < direction.tables.size(); ++n)
        if (is_called(path, direction.tables[n].name)) {
          shape const wanted = (policy.*listed.member).extents(), got = direction.tables[n].along.extents();
          if (!(got == wanted))
            throw error("jvp", "the direction of table " + path, "shape " + to_string(got), to_string(wanted));
          tables.push_back(&(policy.*listed.member));
          tables_along.push_back(direction.tables[n].along);
          used_tables[n] = true;
        }
    });
    for (std::size_t n = 0; n < used_parameters.size(); ++n)
      if (!used_parameters[n])
        throw error("jvp", "direction.parameters", "the name " + direction.parameters[n].name, "a parameter of the operator");
    for (std::size_t n = 0; n < used_tables.size(); ++n)
      if (!used_tables[n])
        throw error("jvp", "direction.tables", "the name " + direction.tables[n].name, "a table of the operator");
  }
  lift<dual<T, 1>> numbers() const {
    return {{}, {slots.data(), int(slots.size()), 0, along.data(), tables.data(), int(tables.size()), tables_along.data()}};
  }
};

inline void check_direction(char const* function, char const* name, tangent_tensor const& x) {
  if (x.moves() && !(x.along.extents() == x.value.extents()))
    throw error(function, std::string("the direction of ") + name, "shape " + to_string(x.along.extents()),
                to_string(x.value.extents()) + ", the shape of the tensor");
}
template <class Op>
void check_directions(char const* function, inputs<Op, tangent_tensor> const& in) {
  for_each_field([&]<field F>() {
    if constexpr (Op::uses(F)) check_direction(function, name_of(F), member<F>(in));
  });
}
template <class Op>
void check_directions(char const* function, cotangents<Op, tangent_tensor> const& d) {
  check_direction(function, "the gradient of out", d.out);
  if constexpr (Op::has_lse) check_direction(function, "the gradient of lse", d.lse);
  if constexpr (Op::has_ground_weight) check_direction(function, "the gradient of ground_weight", d.ground_weight);
}

}  // namespace detail

/// Values and directional derivatives of everything a dense evaluation knows: each number is a dual with one tangent.
/// Complexity: about three times that of forward.
template <class T, class Op>
dense_result<dual<T, 1>> jvp(reference<T>, Op const& op, inputs<Op, tangent_tensor> const& in,
                             policy_direction const& direction = {}) {
  problem_shape const p = detail::checked_problem("jvp", op, in, detail::output_shape(in));
  detail::check_directions("jvp", in);
  detail::moving_numbers<T> const moving(op, direction);
  return detail::dense_forward<dual<T, 1>>(op, in, p, moving.numbers());
}

/// Gradients and how they change along a direction: a Hessian-vector product of the objective that the cotangents define.
/// Directions move the values of parameters, not the sources of a projection, whose gradients are then those at a fixed slope of
/// the activation. Meaningful where the operator is smooth; at kinks and ties it is that of the one-sided derivative.
template <class T, class Op>
dense_gradients<dual<T, 1>> jvp_of_vjp(reference<T>, Op const& op, inputs<Op, tangent_tensor> const& in,
                                       cotangents<Op, tangent_tensor> const& d, policy_direction const& direction = {}) {
  problem_shape const p = detail::checked_problem("jvp_of_vjp", op, in, detail::output_shape(in));
  detail::check_directions("jvp_of_vjp", in);
  detail::check_directions("jvp_of_vjp", d);
  detail::moving_numbers<T> const moving(op, direction);
  return detail::dense_vjp<dual<T, 1>>(op, in, p, d, moving.numbers());
}

}  // namespace attune
