// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   certificate = sorted::forward(thrust_on(policy), sorted::gaussian{tau, 1e-6}, {sort_q, sort_k, v}, {out, lse})
//
// Each query sums the keys of a window of its own, found by binary searches, and says what it has left out.
#pragma once

#include <attune/operators/row_state.hpp>
#include <attune/policies/normalizer/softmax.hpp>
#include <attune/sorted/gaussian_window.hpp>
#include <attune/sorted/thrust/lines.hpp>

namespace attune::sorted {

namespace detail {

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

}  // namespace detail

/// Writes out, and lse if it is there: full visibility. Returns the worst row's certificate: what windows leave out, at
/// most `tolerance` of a row's mass, and the rounding of the sums; there is no series, and `boxes` counts the queries.
/// tau:         shared, per head or per query.
/// Errors:      as the CPU's. On a device numbers are not checked.
/// Cost:        a stable sort, three binary searches per query and 8 features, and the pairs of the windows. Scratch:
///              two numbers per key and per query.
/// Determinism: the same bits on every run and for any number of threads.
template <class T, class Policy>
gaussian_certificate forward(thrust_executor<T, Policy> const& exec, gaussian const& op,
                             std::type_identity_t<arrays<T>> const& in, std::type_identity_t<results<T>> const& to) {
  using lines_type = detail::key_lines<double, T>;
  constexpr char const* name = "sorted::forward(gaussian)";
  detail::extents const e = detail::checked(name, in, exec.memory);
  attune::detail::check_parameter<double>(name, "tau", op.tau, domain::positive, e.batch, e.heads, e.queries,
                                          exec.memory);
  detail::check_tolerance(name, op.tolerance);
  detail::check_results(name, e, to);
  detail::require_full(name, op.sees);
  detail::sorted_scalars<double, Policy> keys(exec, in.sort_k);
  lines_type const lines{e, lines_type::count(e, false), keys.values(), keys.places(), in.v, in.sort_q};
  index_t const rows = detail::query_task::count(e),
                pieces = (e.width + detail::line_stretch - 1) / detail::line_stretch;
  attune::exec_thrust::numbers<double, Policy> discarded(exec, rows), rounded(exec, rows);
  double *const left_out = discarded.data(), *const rounding = rounded.data();
  attune::exec_thrust::for_each_task(
      exec, rows * (pieces < 1 ? 1 : pieces),
      detail::window_query<T, lines_type>{lines, op.tau, std::log(op.tolerance), to.out, to.lse, left_out, rounding});
  gaussian_certificate worst;
  worst.discarded = attune::exec_thrust::product_of(exec, left_out, rows, detail::larger_number{}, 0.0);
  worst.rounded = attune::exec_thrust::product_of(exec, rounding, rows, detail::larger_number{}, 0.0);
  worst.boxes = rows;
  return worst;
}

}  // namespace attune::sorted
