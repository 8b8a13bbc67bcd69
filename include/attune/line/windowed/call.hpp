// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   a call of line::windowed or line::hybrid: checks, and the arguments of the heads
#pragma once

#include <cmath>

#include <attune/line/call/call.hpp>
#include <attune/line/windowed.hpp>
#include <attune/line/windowed/run.hpp>

namespace attune::line::detail {

template <class Op, class T>
windowed_call call_of(char const* function, Op const& op, inputs<Op, tensor<T const>> const& in,
                      problem_shape const& p) {
  static_assert(
      requires { rule_of(op.window); },
      "attune: line::nearest is a window of decode(); forward() and vjp() take certified, half or radius");
  if constexpr (std::is_same_v<std::remove_cvref_t<decltype(op.window)>, certified>)
    check_tolerance(function, op.window.tolerance);
  else
    check_window(function, op.window);
  windowed_call c{op.tau, {}, rule_of(op.window)};
  if constexpr (Op::has_vectors) c.scale = op.scale;
  if constexpr (Op::has_sink) {
    c.sink = op.sink.sort_k;
    if (!c.sink.is_set()) throw error(function, "sink.sort_k", "no value", "the sort key of the sink");
    attune::detail::check_parameter<T>(function, "sink.sort_k", c.sink, domain::real, p.batch, p.heads, p.queries);
    shape const e = in.v0.extents();
    if (c.sink.extents().position != 1 || e.position != 1)
      throw error(function, e.position == 1 ? "sink.sort_k" : "v0", "one value per query",
                  "values shared by queries: the sink is one token");
    if ((e.batch != 1 && e.batch != p.batch) || (e.head != 1 && e.head != p.heads) || e.feature != p.value_width)
      throw error(function, "v0", attune::detail::text("shape ", to_string(e)),
                  attune::detail::text("(1 or ", p.batch, ", 1 or ", p.heads, ", 1, ", p.value_width, ")"));
  }
  return c;
}

template <class Op, class T, class Call>
windowed_arrays<T> arrays_of(Op const&, inputs<Op, tensor<T const>> const& in, Call const& c) {
  windowed_arrays<T> to{c.in().sort_q, c.in().sort_k, c.in().v};
  if constexpr (Op::has_vectors) to.q = c.in().q, to.k = c.in().k;
  if constexpr (Op::has_sink) to.sink_v = in.v0;
  return to;
}

template <class T, class Arch, class Op>
window_certificate forward_windowed(cpu<T, Arch> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in,
                                    outputs<Op, T> const& to, tensor<double> const& discarded) {
  call<T, Op> const c("forward", op, in, to.out.extents());
  attune::detail::check_outputs("forward", to, c.problem());
  extents const e = c.extents();
  windowed_call const what = call_of<Op, T>("forward", op, in, c.problem());
  if (!discarded.absent()) {
    attune::detail::require_shape("forward", "discarded", discarded.extents(), e.query_side(1), "");
    attune::detail::require_distinct("forward", "discarded", discarded);
  }
  if (c.empty()) return {};
  return run_windowed<T, Arch>(what, c.sees(), arrays_of(op, in, c), e, {to.out, to.lse.values, discarded},
                               workers_of(exec));
}

template <class T, class Arch, class Op>
certified_gradients<T, window_certificate> vjp_windowed(cpu<T, Arch> const& exec, Op const& op,
                                                        inputs<Op, tensor<T const>> const& in,
                                                        cotangents<Op, tensor<T const>> const& by) {
  call<T, Op> const c("vjp", op, in, attune::detail::output_shape(in));
  attune::detail::check_cotangents("vjp", by, c.problem());
  windowed_call const what = call_of<Op, T>("vjp", op, in, c.problem());
  certified_gradients<T, window_certificate> to{c.blank(), {}};
  auto const of = [&](field f) { return c.view_of(to.of(f)); };
  windowed_gradients<T> d{of(field::sort_q), of(field::sort_k), of(field::v)};
  if constexpr (Op::has_sink) {
    to.of(field::v0) = gradient_array<T>(in.v0.extents());
    d.sink_v = of(field::v0);
    auto& sink = to.parameters.emplace_back();
    sink.path = "sink.sort_k";
    sink.values = gradient_array<T>(op.sink.sort_k.extents());
    d.sink_k = c.view_of(sink.values);
  }
  for (auto& p : to.parameters) {
    if (attune::detail::is_called(p.path, "tau")) d.tau = c.view_of(p.values);
    if (attune::detail::is_called(p.path, "scale")) d.scale = c.view_of(p.values);
  }
  if constexpr (Op::has_vectors) d.q = of(field::q), d.k = of(field::k);
  if (c.empty()) return to;
  to.certificate = run_windowed_vjp<T, Arch>(what, c.sees(), arrays_of(op, in, c), c.extents(), cotangents_of<T>(by), d,
                                             workers_of(exec));
  c.pull_projections(to);
  if constexpr (Op::has_sink) attune::detail::pull_projection<T>(op.sink.sort_k, to.parameters.back());
  return to;
}

}  // namespace attune::line::detail
