// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   forward(reference<T>{}, mixture(which, first, second), inputs)      vjp(...) likewise
#pragma once

#include <attune/calls/mixture.hpp>
#include <attune/exec/reference/backward.hpp>
#include <attune/exec/reference/forward.hpp>

namespace attune {

/// Evaluates each head with its own operator. Columns that an operator lacks are empty in its heads.
template <class T, class... Ops>
dense_result<T> forward(reference<T>, mixture_operator<Ops...> const& mixed,
                        inputs<mixture_operator<Ops...>, any_tensor> const& in) {
  shape const extents = detail::output_shape(in);
  problem_shape const all = detail::checked_problem("forward", mixed, in, extents);
  dense_result<T> result{all, std::vector<dense_head<T>>(std::size_t(all.batch * all.heads))};
  detail::for_each_operator(mixed, [&](auto const& op, index_t number) {
    using part = std::remove_cvref_t<decltype(op)>;
    auto const own = detail::narrowed<part>(in);
    problem_shape const p = detail::checked_problem("forward", op, own, extents);
    for (index_t b = 0; b < p.batch; ++b)
      for (index_t h = 0; h < p.heads; ++h) {
        if (mixed.which[h] != number) continue;
        dense_head<T>& head = result.heads[std::size_t(b * p.heads + h)];
        head = detail::blank_head<T, part>(p, p.queries);
        for (index_t i = 0; i < p.queries; ++i) detail::dense_row<T>(op, own, p, b, h, i, head, i);
      }
  });
  return result;
}

/// Gradients of all heads. Paths of parameters and tables begin with the number of their operator: "0.kernel.scale".
template <class T, class... Ops>
dense_gradients<T> vjp(reference<T>, mixture_operator<Ops...> const& mixed,
                       inputs<mixture_operator<Ops...>, any_tensor> const& in,
                       cotangents<mixture_operator<Ops...>, any_tensor> const& d) {
  return detail::gradients_of_operators<T>(
      mixed, in, d, [&](auto const& op, auto const& own, problem_shape const& p, auto const& by, index_t number) {
        return detail::dense_vjp<T>(op, own, p, by, lift<T>{}, [&](index_t h) { return mixed.which[h] == number; });
      });
}

}  // namespace attune
