// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Steps that calls of operators, folds and mixtures share: saved rows, gradients from them, directional derivatives.
#pragma once

#include <type_traits>
#include <utility>

#include <attune/calls/executor.hpp>
#include <attune/exec/direction.hpp>
#include <attune/exec/gradients.hpp>
#include <attune/exec/moving_tensor.hpp>
#include <attune/exec/saved.hpp>

namespace attune::detail {

/// An executor whose vjp_rows() reads saved rows and writes to views. The others run the forward pass themselves and
/// return dense gradients.
template <class Exec>
inline constexpr bool reads_saved_rows = requires { requires Exec::reads_saved_rows; };

/// The saved rows of an operator, without outputs.
template <class Exec, class Op>
saved_rows<number_of<Exec>, Op> rows_alone(Exec const& exec, Op const& op, inputs<Op, typename Exec::view> const& in,
                                           problem_shape const& p, heads_served serves = {}) {
  saved_rows<number_of<Exec>, Op> rows(op, p);
  save_rows(typename Exec::engine{}, exec, op, in, p, static_cast<outputs<Op, number_of<Exec>> const*>(nullptr), rows,
            serves);
  return rows;
}

/// Writes gradients to views, which are zero if they lie in memory of the host.
template <class Exec, class Op, class Saved, class T>
void gradients_to(Exec const& exec, Op const& op, inputs<Op, typename Exec::view> const& in, problem_shape const& p,
                  Saved const& saved, cotangents<Op, typename Exec::view> const& d, gradient_views<T> const& to,
                  heads_served serves = {}) {
  check_cotangents("vjp", d, p);
  shape const rows{p.batch, p.heads, p.row_count(), p.value_width};
  if (!(rows_of(saved) == rows))
    throw error("vjp", "saved", text("rows of shape ", to_string(rows_of(saved))),
                text(to_string(rows), ", those of the inputs"));
  vjp_rows(typename Exec::engine{}, exec, op, in, p, saved, d, to, serves);
}
/// All gradients, from saved rows. Reuses the memory of `memory`.
template <class Exec, class Op>
dense_gradients<number_of<Exec>> gradients_of_rows(Exec const& exec, Op const& op,
                                                   inputs<Op, typename Exec::view> const& in, problem_shape const& p,
                                                   saved_rows<number_of<Exec>, Op> const& saved,
                                                   cotangents<Op, typename Exec::view> const& d,
                                                   heads_served serves = {},
                                                   dense_gradients<number_of<Exec>> memory = {}) {
  using T = number_of<Exec>;
  dense_gradients<T> to = blank_gradients<T>(op, in, std::move(memory));
  detail::gradients_to(exec, op, in, p, detail::view_of<T, Op>(saved), d, detail::views_of(to), serves);
  pull_projections(listed_parameters(op), to);
  return to;
}
/// All gradients. Runs the forward pass itself.
template <class Exec, class Op>
dense_gradients<number_of<Exec>> gradients_of_call(Exec const& exec, Op const& op,
                                                   inputs<Op, typename Exec::view> const& in, problem_shape const& p,
                                                   cotangents<Op, typename Exec::view> const& d,
                                                   heads_served serves = {}) {
  if constexpr (reads_saved_rows<Exec>) {
    return detail::gradients_of_rows(exec, op, in, p, detail::rows_alone(exec, op, in, p, serves), d, serves);
  } else {
    check_cotangents("vjp", d, p);
    return vjp_rows(typename Exec::engine{}, exec, op, in, p, d, serves);
  }
}

/// Values and directional derivatives of the outputs of an operator.
template <class Exec, class Op>
auto jvp_of_call(Exec const& exec, Op const& op, inputs<Op, typename Exec::moving_view> const& in,
                 policy_direction const& direction) {
  using view = typename Exec::view;
  auto const values = make_inputs<Op, view>([&]<field F>() { return member<F>(in).value; }, in.offset, in.offsets);
  auto const along = make_inputs<Op, view>([&]<field F>() { return member<F>(in).along; }, in.offset, in.offsets);
  problem_shape const p = checked_inputs("jvp", op, values, memory_of<Exec>());
  for_each_field([&]<field F>() {
    if constexpr (Op::uses(F)) check_direction("jvp", name_of(F), member<F>(values), member<F>(along));
  });
  return jvp_rows(typename Exec::engine{}, exec, op, values, along, p, direction);
}

}  // namespace attune::detail
