// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   g = vjp(cpu{}, line::laplacian{0.5}, {.sort_q = S, .sort_k = K, .v = V}, {.out = dO});
//   g.of(field::v), g.parameter("tau")
//
// The gradients of <d.out, out> + <d.lse, lse>, by every input and by tau, as vjp of any operator returns them. The
// forward pass runs again: nothing has to be saved.
#pragma once

#include <attune/line/call.hpp>
#include <attune/sorted/gaussian.hpp>
#include <attune/sorted/laplacian.hpp>
#include <attune/sorted/sliced_relu.hpp>

namespace attune {

namespace line {

/// The gradients of an operator that leaves something out, exact for the weights that it kept.
template <class T, class Certificate>
struct certified_gradients : dense_gradients<T> {
  Certificate certificate;
};

}  // namespace line

/// tau: by homogeneity of the scores from the other two, so that its rounding is theirs times the range of scalars over
/// tau.
template <class T, class Arch, class Mask>
dense_gradients<T> vjp(cpu<T, Arch> exec, line::laplacian<Mask> const& op,
                       inputs<line::laplacian<Mask>, tensor<T const>> const& in,
                       cotangents<line::laplacian<Mask>, tensor<T const>> const& d) {
  line::detail::call<T, line::laplacian<Mask>> const c("vjp", op, in, detail::output_shape(in));
  detail::check_cotangents("vjp", d, c.problem());
  dense_gradients<T> to = c.blank();
  if (c.empty()) return to;
  auto const by_tau = sorted::detail::run_laplacian_vjp<T, Arch>(op.tau, c.sees(), c.arrays(), c.extents(),
                                                                 line::detail::cotangents_of<T>(d), c.views(to),
                                                                 line::detail::workers_of(exec));
  c.give_bandwidth(by_tau, to);
  return to;
}

template <class T, class Arch, class Normalizer, class Mask>
dense_gradients<T> vjp(cpu<T, Arch> exec, line::sliced_relu<Normalizer, Mask> const& op,
                       inputs<line::sliced_relu<Normalizer, Mask>, tensor<T const>> const& in,
                       cotangents<line::sliced_relu<Normalizer, Mask>, tensor<T const>> const& d) {
  line::detail::call<T, line::sliced_relu<Normalizer, Mask>> const c("vjp", op, in, detail::output_shape(in));
  detail::check_cotangents("vjp", d, c.problem());
  dense_gradients<T> to = c.blank();
  if (c.empty()) return to;
  sorted::detail::run_sliced_relu_vjp<T, Arch>(Normalizer::traits.divided_by, c.sees(), c.arrays(), c.extents(),
                                               line::detail::cotangents_of<T>(d), c.views(to),
                                               line::detail::workers_of(exec));
  return to;
}

/// Exact for approximate weights whose rows differ from the exact ones by at most certificate.output() in sum. Runs a
/// forward pass of its own, by series. (A forward() that went by waves has other weights, within both certificates.)
template <class T, class Arch, class Mask>
line::certified_gradients<T, sorted::gaussian_certificate> vjp(
    cpu<T, Arch> exec, line::gaussian<Mask> const& op, inputs<line::gaussian<Mask>, tensor<T const>> const& in,
    cotangents<line::gaussian<Mask>, tensor<T const>> const& d) {
  line::detail::call<T, line::gaussian<Mask>> const c("vjp", op, in, detail::output_shape(in));
  detail::check_cotangents("vjp", d, c.problem());
  line::certified_gradients<T, sorted::gaussian_certificate> to{c.blank(), {}};
  if (c.empty()) return to;
  std::vector<double> by_tau;
  to.certificate = sorted::detail::run_gaussian_vjp<T, Arch>(op.tau, op.tolerance, c.sees(), c.arrays(), c.extents(),
                                                             line::detail::cotangents_of<T>(d), c.views(to), by_tau,
                                                             line::detail::workers_of(exec));
  c.give_bandwidth(by_tau, to);
  return to;
}

}  // namespace attune
