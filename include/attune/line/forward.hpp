// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   forward(cpu{}, line::laplacian{0.5, mask::causal{}}, {.v = V, .sort_q = S, .sort_k = K},
//           {.out = O, .lse = natural_lse(L)})
//
// Errors:      attune::error names argument, value and expectation; then nothing is written.
// Determinism: bitwise the same for any number of threads.
// Costs and bounds: line/operators.hpp.
#pragma once

#include <attune/line/call/call.hpp>
#include <attune/line/gaussian/head.hpp>
#include <attune/line/laplacian/head.hpp>
#include <attune/line/low_rank/call.hpp>
#include <attune/line/sliced_relu/head.hpp>
#include <attune/line/windowed/call.hpp>

namespace attune {

/// Writes out, and lse if given.
template <class T, class Arch, class Mask>
void forward(cpu<T, Arch> exec, line::laplacian<Mask> const& op,
             inputs<line::laplacian<Mask>, tensor<T const>> const& in, outputs<line::laplacian<Mask>, T> const& to) {
  line::detail::call<T, line::laplacian<Mask>> const c("forward", op, in, to.out.extents());
  line::detail::require_bandwidth_of_head("forward", op);
  detail::check_outputs("forward", to, c.problem());
  if (c.empty()) return;
  line::detail::run_laplacian<T, Arch>(op.tau, c.sees(), c.arrays(), c.extents(), line::detail::results_of(to),
                                       line::detail::workers_of(exec));
}

/// Writes out, and lse if given.
template <class T, class Arch, class Normalizer, class Mask>
void forward(cpu<T, Arch> exec, line::sliced_relu<Normalizer, Mask> const& op,
             inputs<line::sliced_relu<Normalizer, Mask>, tensor<T const>> const& in,
             outputs<line::sliced_relu<Normalizer, Mask>, T> const& to) {
  line::detail::call<T, line::sliced_relu<Normalizer, Mask>> const c("forward", op, in, to.out.extents());
  detail::check_outputs("forward", to, c.problem());
  if (c.empty()) return;
  line::detail::run_sliced_relu<T, Arch>(Normalizer::traits.divided_by, c.sees(), c.arrays(), c.extents(),
                                         line::detail::results_of(to), line::detail::workers_of(exec));
}

/// Writes out, and lse if given. Returns the certificate of the worst row.
template <class T, class Arch, class Mask>
line::gaussian_certificate forward(cpu<T, Arch> exec, line::gaussian<Mask> const& op,
                                   inputs<line::gaussian<Mask>, tensor<T const>> const& in,
                                   outputs<line::gaussian<Mask>, T> const& to) {
  line::detail::call<T, line::gaussian<Mask>> const c("forward", op, in, to.out.extents());
  line::detail::require_bandwidth_of_head("forward", op);
  line::detail::check_tolerance("forward", op.tolerance);
  detail::check_outputs("forward", to, c.problem());
  if (c.empty()) return {};
  return line::detail::run_gaussian<T, Arch>(op.tau, op.tolerance, c.sees(), c.arrays(), c.extents(),
                                             line::detail::results_of(to), line::detail::workers_of(exec));
}

/// Writes out, and lse if given. If `discarded` (B, H, Lq, 1) is given, writes to it the bound on the share of each row
/// that windows dropped. Returns the certificate of the worst row.
template <class T, class Arch, class Window, class Mask, class Sink>
line::window_certificate forward(cpu<T, Arch> exec, line::windowed<Window, Mask, Sink> const& op,
                                 inputs<line::windowed<Window, Mask, Sink>, tensor<T const>> const& in,
                                 outputs<line::windowed<Window, Mask, Sink>, T> const& to,
                                 tensor<double> const& discarded = {}) {
  return line::detail::forward_windowed(exec, op, in, to, discarded);
}
/// The same for hybrid attention, which also reads q and k.
template <class T, class Arch, class Window, class Mask, class Sink>
line::window_certificate forward(cpu<T, Arch> exec, line::hybrid<Window, Mask, Sink> const& op,
                                 inputs<line::hybrid<Window, Mask, Sink>, tensor<T const>> const& in,
                                 outputs<line::hybrid<Window, Mask, Sink>, T> const& to,
                                 tensor<double> const& discarded = {}) {
  return line::detail::forward_windowed(exec, op, in, to, discarded);
}

/// Writes out, and lse if given. Returns the number of rows for which the approximation has no mass.
template <class T, class Arch>
line::low_rank_report forward(cpu<T, Arch> exec, line::fourier_features const& op,
                              inputs<line::fourier_features, tensor<T const>> const& in,
                              outputs<line::fourier_features, T> const& to) {
  return line::detail::forward_features(exec, op, in, to);
}
/// The same for the Nystroem approximation.
template <class T, class Arch>
line::low_rank_report forward(cpu<T, Arch> exec, line::nystroem const& op,
                              inputs<line::nystroem, tensor<T const>> const& in, outputs<line::nystroem, T> const& to) {
  return line::detail::forward_features(exec, op, in, to);
}

}  // namespace attune
