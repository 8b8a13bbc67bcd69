// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   forward(cpu{}, mixture(which, first, second), inputs, outputs)
#pragma once

#include <cmath>

#include <attune/exec/cpu/gradients/backward.hpp>
#include <attune/exec/cpu/tile/forward.hpp>
#include <attune/exec/mixture.hpp>

namespace attune {

/// Runs each operator over its own heads. Everything else is as for a single operator.
template <class T, class Arch, class... Ops>
void forward(cpu<T, Arch> exec, mixture_operator<Ops...> const& mixed,
             inputs<mixture_operator<Ops...>, tensor<T const>> const& in,
             outputs<mixture_operator<Ops...>, T> const& out) {
  using whole = mixture_operator<Ops...>;
  problem_shape const all = detail::checked_problem("forward", mixed, in, out.out.extents());
  detail::check_outputs("forward", out, all);
  detail::for_each_operator(mixed, [&](auto const& op, index_t number) {
    using part = std::remove_cvref_t<decltype(op)>;
    auto const own_in = detail::narrowed<part>(in);
    auto const own_out = detail::narrowed<part>(out);
    problem_shape const p = detail::checked_problem("forward", op, own_in, out.out.extents());
    exec_cpu::stream(
        exec, op, own_in, p, {0, p.keys}, [&](index_t h) { return mixed.which[h] == number; },
        [&](auto& tile, auto const& memory) { tile.finish(own_in, own_out, memory); });
    auto const fill = [&](tensor<T> const& to, T value) {
      if (to.absent()) return;
      for (index_t b = 0; b < all.batch; ++b)
        for (index_t h = 0; h < all.heads; ++h)
          for (index_t i = 0; i < all.queries && mixed.which[h] == number; ++i) to(b, h, i, 0) = value;
    };
    if constexpr (whole::has_ground_weight && !part::has_ground_weight) fill(out.ground_weight, T(0));
    if constexpr (whole::has_threshold && !part::has_threshold)
      fill(out.threshold, std::numeric_limits<T>::quiet_NaN());
  });
}

/// Gradients of all heads. Paths of parameters and tables begin with the number of their operator: "0.kernel.scale".
template <class T, class Arch, class... Ops>
dense_gradients<T> vjp(cpu<T, Arch> exec, mixture_operator<Ops...> const& mixed,
                       inputs<mixture_operator<Ops...>, tensor<T const>> const& in,
                       cotangents<mixture_operator<Ops...>, tensor<T const>> const& d) {
  return detail::gradients_of_mixture<T>(
      mixed, in, d, [&](auto const& op, auto const& own, problem_shape const& p, auto const& by, index_t number) {
        return exec_cpu::fused_vjp(exec, op, own, p, by, [&](index_t h) { return mixed.which[h] == number; });
      });
}

}  // namespace attune
