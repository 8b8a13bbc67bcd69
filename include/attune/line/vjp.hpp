// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   g = vjp(cpu{}, line::laplacian{0.5}, {.v = V, .sort_q = S, .sort_k = K}, {.out = dO});
//   g.of(field::v), g.parameter("tau")
//
// The gradients of <d.out, out> + <d.lse, lse> by every input and by tau, returned like the vjp of any operator. The
// forward pass runs again; nothing needs to be saved.
#pragma once

#include <attune/line/call/call.hpp>
#include <attune/line/gaussian/head.hpp>
#include <attune/line/laplacian/head.hpp>
#include <attune/line/low_rank/call.hpp>
#include <attune/line/sliced_relu/head.hpp>
#include <attune/line/windowed/call.hpp>

namespace attune {

/// The gradient by tau follows from the gradients by the scalars, because scores are homogeneous. Its rounding error is
/// theirs times (range of the scalars / tau).
template <class T, class Arch, class Mask>
dense_gradients<T> vjp(cpu<T, Arch> exec, line::laplacian<Mask> const& op,
                       inputs<line::laplacian<Mask>, tensor<T const>> const& in,
                       cotangents<line::laplacian<Mask>, tensor<T const>> const& d) {
  line::detail::call<T, line::laplacian<Mask>> const c("vjp", op, in, detail::output_shape(in));
  line::detail::require_bandwidth_of_head("vjp", op);
  detail::check_cotangents("vjp", d, c.problem());
  dense_gradients<T> to = c.blank();
  if (c.empty()) return to;
  auto const by_tau = line::detail::run_laplacian_vjp<T, Arch>(op.tau, c.sees(), c.arrays(), c.extents(),
                                                               line::detail::cotangents_of<T>(d), c.views(to),
                                                               line::detail::workers_of(exec));
  c.give_bandwidth(by_tau, to);
  return to;
}

/// The gradients by sort_q, sort_k and v. Throws attune::error as forward does.
template <class T, class Arch, class Normalizer, class Mask>
dense_gradients<T> vjp(cpu<T, Arch> exec, line::sliced_relu<Normalizer, Mask> const& op,
                       inputs<line::sliced_relu<Normalizer, Mask>, tensor<T const>> const& in,
                       cotangents<line::sliced_relu<Normalizer, Mask>, tensor<T const>> const& d) {
  line::detail::call<T, line::sliced_relu<Normalizer, Mask>> const c("vjp", op, in, detail::output_shape(in));
  detail::check_cotangents("vjp", d, c.problem());
  dense_gradients<T> to = c.blank();
  if (c.empty()) return to;
  line::detail::run_sliced_relu_vjp<T, Arch>(Normalizer::traits.divided_by, c.sees(), c.arrays(), c.extents(),
                                             line::detail::cotangents_of<T>(d), c.views(to),
                                             line::detail::workers_of(exec));
  return to;
}

/// Exact gradients of approximate weights, whose rows differ from the exact ones by at most certificate.output() in
/// sum. Runs the forward pass itself, by series. (A forward() that used waves has other weights, within both
/// certificates.)
template <class T, class Arch, class Mask>
line::certified_gradients<T, line::gaussian_certificate> vjp(
    cpu<T, Arch> exec, line::gaussian<Mask> const& op, inputs<line::gaussian<Mask>, tensor<T const>> const& in,
    cotangents<line::gaussian<Mask>, tensor<T const>> const& d) {
  line::detail::call<T, line::gaussian<Mask>> const c("vjp", op, in, detail::output_shape(in));
  line::detail::require_bandwidth_of_head("vjp", op);
  line::detail::check_tolerance("vjp", op.tolerance);
  detail::check_cotangents("vjp", d, c.problem());
  line::certified_gradients<T, line::gaussian_certificate> to{c.blank(), {}};
  if (c.empty()) return to;
  std::vector<double> by_tau;
  to.certificate = line::detail::run_gaussian_vjp<T, Arch>(op.tau, op.tolerance, c.sees(), c.arrays(), c.extents(),
                                                           line::detail::cotangents_of<T>(d), c.views(to), by_tau,
                                                           line::detail::workers_of(exec));
  c.give_bandwidth(by_tau, to);
  return to;
}

/// Exact gradients of the weights that windows kept, up to rounding. Gradients by tau and scale have the granularity of
/// tau and scale. Gradients of a sink: g.parameter("sort_k") and g.of(field::v0).
template <class T, class Arch, class Window, class Mask, class Sink>
line::certified_gradients<T, line::window_certificate> vjp(
    cpu<T, Arch> exec, line::windowed<Window, Mask, Sink> const& op,
    inputs<line::windowed<Window, Mask, Sink>, tensor<T const>> const& in,
    cotangents<line::windowed<Window, Mask, Sink>, tensor<T const>> const& d) {
  return line::detail::vjp_windowed(exec, op, in, d);
}
/// The same for hybrid attention, with gradients by q, k and scale too.
template <class T, class Arch, class Window, class Mask, class Sink>
line::certified_gradients<T, line::window_certificate> vjp(
    cpu<T, Arch> exec, line::hybrid<Window, Mask, Sink> const& op,
    inputs<line::hybrid<Window, Mask, Sink>, tensor<T const>> const& in,
    cotangents<line::hybrid<Window, Mask, Sink>, tensor<T const>> const& d) {
  return line::detail::vjp_windowed(exec, op, in, d);
}

/// The gradients of the computed approximation. Frequencies are constants except for their scale in tau. nystroem has
/// no gradient by tau.
template <class T, class Arch>
line::certified_gradients<T, line::low_rank_report> vjp(cpu<T, Arch> exec, line::fourier_features const& op,
                                                        inputs<line::fourier_features, tensor<T const>> const& in,
                                                        cotangents<line::fourier_features, tensor<T const>> const& d) {
  return line::detail::vjp_features(exec, op, in, d);
}
/// The same for the Nystroem approximation.
template <class T, class Arch>
line::certified_gradients<T, line::low_rank_report> vjp(cpu<T, Arch> exec, line::nystroem const& op,
                                                        inputs<line::nystroem, tensor<T const>> const& in,
                                                        cotangents<line::nystroem, tensor<T const>> const& d) {
  return line::detail::vjp_features(exec, op, in, d);
}

}  // namespace attune
