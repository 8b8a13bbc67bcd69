// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   forward(thrust_on(policy), mixture(which, first, second), inputs, outputs)      vjp(...) likewise
#pragma once

#include <attune/exec/mixture.hpp>
#include <attune/exec/thrust/backward.hpp>

namespace attune {

namespace exec_thrust {

/// Fills an output for the heads of an operator that does not have it.
template <class T>
struct fill_program {
  problem_shape p;
  heads_served serves;
  tensor<T> to;
  T value;
  ATTUNE_HD ATTUNE_PROGRAM void operator()(index_t n) const {
    row_task const t(n, p, 1);
    if (serves(t.h)) to(t.b, t.h, t.i, 0) = value;
  }
};

}  // namespace exec_thrust

/// Runs each operator over its own heads. Everything else is as for a single operator. `which` is in memory that
/// programs read.
template <class T, class Policy, class... Ops>
void forward(thrust_executor<T, Policy> const& exec, mixture_operator<Ops...> const& mixed,
             inputs<mixture_operator<Ops...>, tensor<T const>> const& in,
             outputs<mixture_operator<Ops...>, T> const& out) {
  using whole = mixture_operator<Ops...>;
  problem_shape const all = detail::checked_problem("forward", mixed, in, out.out.extents(), exec.memory);
  detail::check_outputs("forward", out, all);
  detail::for_each_operator(mixed, [&](auto const& op, index_t number) {
    using part = std::remove_cvref_t<decltype(op)>;
    auto const own_in = detail::narrowed<part>(in);
    problem_shape const p = detail::checked_problem("forward", op, own_in, out.out.extents(), exec.memory);
    exec_thrust::heads_served const serves{mixed.which, number};
    exec_thrust::forward_rows(exec, op, own_in, p, detail::narrowed<part>(out), serves);
    [[maybe_unused]] auto const fill = [&](tensor<T> const& to, T value) {
      if (!to.absent())
        exec_thrust::for_each_task(exec, exec_thrust::row_task::count(p, 1),
                                   exec_thrust::fill_program<T>{p, serves, to, value});
    };
    if constexpr (whole::has_ground_weight && !part::has_ground_weight) fill(out.ground_weight, T(0));
    if constexpr (whole::has_threshold && !part::has_threshold)
      fill(out.threshold, std::numeric_limits<T>::quiet_NaN());
  });
}

/// Gradients of all heads. Paths of parameters and tables begin with the number of their operator: "0.kernel.scale".
template <class T, class Policy, class... Ops>
dense_gradients<T> vjp(thrust_executor<T, Policy> const& exec, mixture_operator<Ops...> const& mixed,
                       inputs<mixture_operator<Ops...>, tensor<T const>> const& in,
                       cotangents<mixture_operator<Ops...>, tensor<T const>> const& d) {
  return detail::gradients_of_mixture<T>(
      mixed, in, d,
      [&](auto const& op, auto const& own, problem_shape const& p, auto const& by, index_t number) {
        return exec_thrust::vjp_rows(exec, op, own, p, by, {mixed.which, number});
      },
      exec.memory);
}

}  // namespace attune
