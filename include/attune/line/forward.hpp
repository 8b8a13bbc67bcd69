// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   forward(cpu{}, line::laplacian{0.5, mask::causal{}}, {.sort_q = S, .sort_k = K, .v = V}, {.out = O, .lse = L})
//
// Errors:      attune::error names argument, value and expectation; nothing is written then.
// Determinism: bitwise the same for any number of threads.
// Costs and bounds: line/operators.hpp.
#pragma once

#include <attune/line/call.hpp>
#include <attune/sorted/gaussian.hpp>
#include <attune/sorted/laplacian.hpp>
#include <attune/sorted/sliced_relu.hpp>

namespace attune {

/// Writes out, and lse if it is given.
template <class T, class Arch, class Mask>
void forward(cpu<T, Arch> exec, line::laplacian<Mask> const& op,
             inputs<line::laplacian<Mask>, tensor<T const>> const& in, outputs<line::laplacian<Mask>, T> const& to) {
  line::detail::call<T, line::laplacian<Mask>> const c("forward", op, in, to.out.extents());
  detail::check_outputs("forward", to, c.problem());
  if (c.empty()) return;
  sorted::detail::run_laplacian<T, Arch>(op.tau, c.sees(), c.arrays(), c.extents(), line::detail::results_of(to),
                                         line::detail::workers_of(exec));
}

/// Writes out, and lse if it is given.
template <class T, class Arch, class Normalizer, class Mask>
void forward(cpu<T, Arch> exec, line::sliced_relu<Normalizer, Mask> const& op,
             inputs<line::sliced_relu<Normalizer, Mask>, tensor<T const>> const& in,
             outputs<line::sliced_relu<Normalizer, Mask>, T> const& to) {
  line::detail::call<T, line::sliced_relu<Normalizer, Mask>> const c("forward", op, in, to.out.extents());
  detail::check_outputs("forward", to, c.problem());
  if (c.empty()) return;
  sorted::detail::run_sliced_relu<T, Arch>(Normalizer::traits.divided_by, c.sees(), c.arrays(), c.extents(),
                                           line::detail::results_of(to), line::detail::workers_of(exec));
}

/// Writes out, and lse if it is given. Returns the certificate of the worst row.
template <class T, class Arch, class Mask>
sorted::gaussian_certificate forward(cpu<T, Arch> exec, line::gaussian<Mask> const& op,
                                     inputs<line::gaussian<Mask>, tensor<T const>> const& in,
                                     outputs<line::gaussian<Mask>, T> const& to) {
  line::detail::call<T, line::gaussian<Mask>> const c("forward", op, in, to.out.extents());
  detail::check_outputs("forward", to, c.problem());
  if (c.empty()) return {};
  return sorted::detail::run_gaussian<T, Arch>(op.tau, op.tolerance, c.sees(), c.arrays(), c.extents(),
                                               line::detail::results_of(to), line::detail::workers_of(exec));
}

}  // namespace attune
