// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   sorted::forward(thrust_on(policy), op, arrays, results)  ->  forward(thrust_on(policy), line::..., inputs, outputs)
//
// The calls on Thrust of version 0.1. Version 0.3 removes them.
#pragma once

#include <attune/line/thrust/gaussian.hpp>
#include <attune/line/thrust/laplacian_vjp.hpp>
#include <attune/line/thrust/sliced_relu_vjp.hpp>
#include <attune/sorted/operators.hpp>

namespace attune::sorted {

namespace detail {

template <class Op>
void require_full(Op const& op) {
  if (!op.sees.sees_all())
    throw error("sorted::forward", "sees", attune::detail::text("the value ", to_string(op.sees)),
                "full: rows that see less are sums over O(log n) runs of keys, which the CPU's threads do");
}

/// Calls use(operator of attune::line, its inputs) for each old operator.
template <class T, class Use>
auto on_line(laplacian const& op, Use const& use) {
  require_full(op);
  return use(line::laplacian{op.tau});
}
template <class T, class Use>
auto on_line(gaussian const& op, Use const& use) {
  require_full(op);
  return use(line::gaussian{op.tau, op.tolerance});
}
template <class T, class Use>
auto on_line(sliced_relu const& op, Use const& use) {
  require_full(op);
  if (op.divided_by == divisor::sum) return use(line::sliced_relu{normalizer::normalized_relu{}});
  if (op.divided_by == divisor::count) return use(line::sliced_relu{normalizer::mean_relu{}});
  return use(line::sliced_relu{normalizer::relu{}});
}

}  // namespace detail

template <class T, class Policy, class Op>
  requires requires(Op const& op) { op.sees.sees_all(); }
ATTUNE_DEPRECATED("call forward(thrust_on(policy), line::..., inputs, outputs)")
auto forward(thrust_executor<T, Policy> const& exec, Op const& op, std::type_identity_t<arrays<T>> const& in,
             std::type_identity_t<results<T>> const& to) {
  return detail::on_line<T>(op, [&]<class Of>(Of const& of) {
    outputs<Of, T> out{.out = to.out};
    if constexpr (Of::has_lse)
      out.lse = natural_lse<T>(to.lse);
    else if (!to.lse.absent())
      throw error("sorted::forward", "lse", "a tensor", "none: weights that are not divided by their sum have no lse");
    return attune::forward(exec, of, inputs<Of, tensor<T const>>{.v = in.v, .sort_q = in.sort_q, .sort_k = in.sort_k},
                           out);
  });
}

/// Only where programs run on the host. On a device, gradients are now returned to the host, and views of device memory
/// are not written.
template <class T, class Policy, class Op>
  requires requires(Op const& op) { op.sees.sees_all(); }
ATTUNE_DEPRECATED("call vjp(thrust_on(policy), line::..., inputs, cotangents)")
void vjp(thrust_executor<T, Policy> const& exec, Op const& op, std::type_identity_t<arrays<T>> const& in,
         std::type_identity_t<cotangents<T>> const& by, std::type_identity_t<gradients<T>> const& d) {
  static_assert(
      thrust_executor<T, Policy>::memory == memory_kind::host,
      "attune: on a device call vjp(thrust_on(policy), line::..., inputs, cotangents), which returns gradients "
      "in memory of the host");
  detail::on_line<T>(op, [&]<class Of>(Of const& of) {
    attune::cotangents<Of, tensor<T const>> from;
    from.out = by.out;
    if constexpr (Of::has_lse)
      from.lse = by.lse;
    else if (!by.lse.absent())
      throw error("sorted::vjp", "by.lse", "a tensor", "none: weights that are not divided by their sum have no lse");
    auto const g =
        attune::vjp(exec, of, inputs<Of, tensor<T const>>{.v = in.v, .sort_q = in.sort_q, .sort_k = in.sort_k}, from);
    auto const give = [](gradient_array<T> const& x, tensor<T> const& to) {
      if (to.absent()) return;
      if (!(to.extents() == x.extents))
        throw error("sorted::vjp", "a gradient", attune::detail::text("shape ", to_string(to.extents())),
                    attune::detail::text("shape ", to_string(x.extents)));
      shape const e = x.extents;
      for (index_t b = 0; b < e.batch; ++b)
        for (index_t h = 0; h < e.head; ++h)
          for (index_t i = 0; i < e.position; ++i)
            for (index_t f = 0; f < e.feature; ++f) to(b, h, i, f) = x(b, h, i, f);
    };
    give(g.of(field::sort_q), d.sort_q);
    give(g.of(field::sort_k), d.sort_k);
    give(g.of(field::v), d.v);
    if constexpr (requires { of.tau; }) give(g.parameter("tau"), d.tau);
  });
}

}  // namespace attune::sorted
