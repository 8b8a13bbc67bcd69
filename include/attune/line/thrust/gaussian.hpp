// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   certificate = forward(thrust_on(policy), line::gaussian{tau, 1e-6}, {.v = V, .sort_q = S, .sort_k = K}, {.out = O})
//
// Each query sums the keys in its own window, found by binary searches, and reports the dropped share.
#pragma once

#include <attune/line/certificates.hpp>
#include <attune/line/gaussian/window.hpp>
#include <attune/line/thrust/lines.hpp>
#include <attune/operators/row_state.hpp>
#include <attune/policies/normalizer/softmax.hpp>

namespace attune::line::detail {

struct larger_number {
  ATTUNE_HD double operator()(double a, double b) const { return a < b ? b : a; }
};

template <class T, class Lines>
struct window_query {
  using values = attune::exec_thrust::accumulators<double, line_stretch>;
  Lines lines;
  parameter tau;
  double log_share;
  tensor<T> out, lse;
  double *discarded, *rounded;

  ATTUNE_HD void operator()(index_t n) const {
    index_t const pieces = (lines.e.width + line_stretch - 1) / line_stretch, all_pieces = pieces < 1 ? 1 : pieces;
    query_task const t(n / all_pieces, lines.e);
    index_t const first = n % all_pieces * line_stretch, line = lines.line_of(t.b, t.h), keys = lines.e.keys;
    double const* const k = lines.keys_of(line);
    double const x = double(lines.q(t.b, t.h, t.i, 0)), bandwidth = tau.at(t.b, t.h, t.i), unit = math::sqrt(bandwidth);
    kernel::scalar_sort::bound<double> const kernel{bandwidth};
    normalizer::softmax::bound<double> const softmax{};
    index_t const at = lines.before(line, x);
    double nearest = math::infinity<double>();
    if (at < keys) nearest = k[at] - x;
    if (at > 0 && x - k[at - 1] < nearest) nearest = x - k[at - 1];
    double const reach = keys == 0 ? 0 : window_reach(nearest / unit, double(keys), log_share) * unit;
    index_t const lo = keys == 0 ? 0 : lines.before(line, x - reach),
                  hi = keys == 0 ? 0 : lines.not_behind(line, x + reach);
    auto state = row_state<double, values>::template empty<normalizer::softmax>(softmax, line_stretch);
    double farthest = 0;
    for (index_t j = lo; j < hi; ++j) {
      double const s = kernel.score(x - k[j], key<double>{0.0});
      index_t const place = lines.place_of(line, j);
      farthest = math::larger(farthest, -s);
      state.template accumulate<normalizer::softmax>(softmax, s, [&](index_t d) {
        return first + d < lines.e.width ? double(lines.value(line, place, first + d)) : 0.0;
      });
    }
    double const mass = state.earned, reference = state.reference;
    auto const done = finish_state<normalizer::softmax>(state, softmax, double(keys));
    for (int d = 0; d < line_stretch; ++d)
      if (first + d < lines.e.width) out(t.b, t.h, t.i, first + d) = T(state.acc[std::size_t(d)]);
    if (first != 0) return;
    if (!lse.absent()) lse(t.b, t.h, t.i, 0) = T(done.lse);
    index_t const row = n / all_pieces;
    discarded[row] = keys == 0 ? 0 : mass_outside(kernel, x, k, keys, lo, hi, reference) / mass;
    rounded[row] = keys == 0 ? 0 : rounding_of_pairs(hi - lo, farthest);
  }
};

/// The arguments are checked.
template <class T, class Policy>
gaussian_certificate run_gaussian(thrust_executor<T, Policy> const& exec, parameter const& tau, double tolerance,
                                  arrays<T> const& in, extents const& e, results<T> const& to) {
  using lines_type = key_lines<double, T>;
  sorted_scalars<double, Policy> keys(exec, in.sort_k);
  lines_type const lines{e, lines_type::count(e, false), keys.values(), keys.places(), in.v, in.sort_q};
  index_t const rows = query_task::count(e), pieces = (e.width + line_stretch - 1) / line_stretch;
  attune::exec_thrust::numbers<double, Policy> discarded(exec, rows), rounded(exec, rows);
  double *const left_out = discarded.data(), *const rounding = rounded.data();
  attune::exec_thrust::for_each_task(
      exec, rows * (pieces < 1 ? 1 : pieces),
      window_query<T, lines_type>{lines, tau, std::log(tolerance), to.out, to.lse, left_out, rounding});
  gaussian_certificate worst;
  worst.discarded = attune::exec_thrust::product_of(exec, left_out, rows, larger_number{}, 0.0);
  worst.rounded = attune::exec_thrust::product_of(exec, rounding, rows, larger_number{}, 0.0);
  worst.boxes = rows;
  return worst;
}

}  // namespace attune::line::detail

namespace attune {

/// Writes out, and lse if given: full rows. Returns the worst row's certificate: the share that windows drop, at most
/// `tolerance` of a row's mass, and the rounding of the sums. There is no series; `boxes` counts the queries.
/// tau:         shared, per batch element, per head or per query.
/// Errors:      as on the CPU; a mask does not compile. On a device numbers are not checked.
/// Cost:        a stable sort, three binary searches per query and per 8 features, and the pairs of the windows.
///              Scratch: two numbers per key and per query.
/// Determinism: the same bits on every run and for any number of threads.
template <class T, class Policy, class Mask>
line::gaussian_certificate forward(thrust_executor<T, Policy> const& exec, line::gaussian<Mask> const& op,
                                   inputs<line::gaussian<Mask>, tensor<T const>> const& in,
                                   outputs<line::gaussian<Mask>, T> const& to) {
  auto const c = line::detail::full_call("forward", exec, op, in, to.out.extents());
  line::detail::check_tolerance("forward", op.tolerance);
  detail::check_outputs("forward", to, c.problem());
  if (c.empty()) return {};
  return line::detail::run_gaussian(exec, op.tau, op.tolerance, c.arrays(), c.extents(), line::detail::results_of(to));
}

}  // namespace attune
