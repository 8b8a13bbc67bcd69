// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   a call of line::fourier_features or line::nystroem: checks, and the arguments of the heads
#pragma once

#include <attune/line/call/call.hpp>
#include <attune/line/low_rank/head.hpp>

namespace attune::line::detail {

template <class Op>
void check_features(char const* function, Op const& op) {
  require_bandwidth_of_head(function, op);
  if (rank_of(op) < 1)
    throw error(function, "the number of features or landmarks", attune::detail::text("the value ", rank_of(op)),
                "at least 1");
}

template <class T, class Arch, class Op>
low_rank_report forward_features(cpu<T, Arch> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in,
                                 outputs<Op, T> const& to) {
  call<T, Op> const c("forward", op, in, to.out.extents());
  check_features("forward", op);
  attune::detail::check_outputs("forward", to, c.problem());
  if (c.empty()) return {};
  return run_features<T>(op, c.arrays(), c.extents(), results_of(to), workers_of(exec));
}

template <class T, class Arch, class Op>
certified_gradients<T, low_rank_report> vjp_features(cpu<T, Arch> const& exec, Op const& op,
                                                     inputs<Op, tensor<T const>> const& in,
                                                     cotangents<Op, tensor<T const>> const& by) {
  call<T, Op> const c("vjp", op, in, attune::detail::output_shape(in));
  check_features("vjp", op);
  attune::detail::check_cotangents("vjp", by, c.problem());
  certified_gradients<T, low_rank_report> to{c.blank(), {}};
  std::vector<double> by_tau(std::size_t(c.problem().batch * c.problem().heads), 0.0);
  if (!c.empty())
    to.certificate =
        run_features_vjp<T>(op, c.arrays(), c.extents(), cotangents_of<T>(by), c.views(to), by_tau, workers_of(exec));
  if constexpr (std::is_same_v<Op, nystroem>)
    to.parameters.clear();  // its landmarks are keys, and count as constants
  else
    c.give_bandwidth(by_tau, to);
  return to;
}

}  // namespace attune::line::detail
