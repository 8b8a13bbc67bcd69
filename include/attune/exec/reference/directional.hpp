// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   r = jvp(reference<T>{}, op, {.q = {Q, dQ}, .k = K, .v = V}, {{"gamma", 1.0}})       r.at(b, h).out(i, d).tangent[0]
//
// Directional derivatives: the same dense code, run on dual numbers from end to end. jvp_of_vjp differentiates the
// gradients once more.
#pragma once

#include <string>

#include <attune/exec/direction.hpp>
#include <attune/exec/reference/backward.hpp>
#include <attune/exec/reference/forward.hpp>

namespace attune {

namespace detail {

inline void check_direction(char const* function, char const* name, tangent_tensor const& x) {
  check_direction(function, name, x.value, x.along);
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

/// Values and directional derivatives of everything that a dense evaluation computes: each number is a dual with one
/// tangent.
/// Complexity: about three times the cost of forward.
template <class T, class Op>
dense_result<dual<T, 1>> jvp(reference<T>, Op const& original, inputs<Op, tangent_tensor> const& in,
                             policy_direction const& direction = {}) {
  if constexpr (Fold<Op>) {
    using D = dual<T, 1>;
    shape const out = detail::folded_shape("jvp", in);
    detail::check_directions("jvp", in);
    detail::folded_direction<Op> const moves(original, direction);
    detail::moving_folds<T, Op> const with_numbers{moves};
    auto const all = detail::dense_terms<D>(
        "jvp", original, in, out, [&](auto const& op, auto const& own, problem_shape const& p, index_t number) {
          return with_numbers(op, number, [&](auto const& moved, lift<D> const& numbers) {
            return detail::dense_forward<D>(moved, own, p, numbers);
          });
        });
    return detail::dense_fold<D, Op>(all, {original, &moves}, out);
  } else {
    Op const op = detail::numbered(original);
    problem_shape const p = detail::checked_inputs("jvp", op, in);
    detail::check_directions("jvp", in);
    detail::moving_numbers<T> const moving(op, direction);
    return detail::dense_forward<dual<T, 1>>(op, in, p, moving.numbers());
  }
}

/// Gradients and how they change along a direction: a Hessian-vector product of the objective that the cotangents
/// define. Directions move the values of parameters, not the sources of a projection. The gradients of such sources are
/// those at a fixed slope of the activation. Meaningful where the operator is smooth. At kinks and ties, the result
/// follows the one-sided derivative.
template <class T, class Op>
dense_gradients<dual<T, 1>> jvp_of_vjp(reference<T>, Op const& op, inputs<Op, tangent_tensor> const& in,
                                       cotangents<Op, tangent_tensor> const& d,
                                       policy_direction const& direction = {}) {
  detail::check_directions("jvp_of_vjp", in);
  if constexpr (Fold<Op>) {
    using D = dual<T, 1>;
    detail::check_direction("jvp_of_vjp", "the gradient of out", d.out);
    detail::folded_direction<Op> const moves(op, direction);
    return detail::dense_vjp_of_fold<D>("jvp_of_vjp", op, in, d, detail::coefficients_in<D, Op>{op, &moves},
                                        detail::moving_folds<T, Op>{moves});
  } else {
    problem_shape const p = detail::checked_inputs("jvp_of_vjp", op, in);
    detail::check_directions("jvp_of_vjp", d);
    detail::moving_numbers<T> const moving(op, direction);
    return detail::dense_vjp<dual<T, 1>>(op, in, p, d, moving.numbers());
  }
}

}  // namespace attune
