// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   forward(thrust_on(policy), line::sliced_relu{}, {.v = V, .sort_q = S, .sort_k = K}, {.out = O})
//
// Left of a query the kernel is a polynomial. Moments of order 0 and 1 about the last key form a monoid, so one scan
// gives all sums.
#pragma once

#include <attune/line/sliced_relu/rows.hpp>
#include <attune/line/thrust/lines.hpp>

namespace attune::line::detail {

/// The sums of row and of |at - k| row over some keys of a line, for values and for 1. `at` is the last of these keys.
template <class W>
struct line_moments {
  index_t line;
  W at, sum[line_stretch + 1], distance[line_stretch + 1];

  /// sum |x - k| row, entry d, for x beyond these keys.
  ATTUNE_HD W seen_from(W const& x, int d) const { return distance[d] + math::abs(W(x - at)) * sum[d]; }
};

template <class W>
struct moment_source {
  index_t first;  ///< feature
  template <class Lines>
  ATTUNE_HD line_moments<W> operator()(Lines const& lines, index_t line, index_t rank) const {
    line_moments<W> s{line, lines.keys_of(line)[rank], {}, {}};
    index_t const place = lines.place_of(line, rank);
    for (int d = 0; d < line_stretch; ++d)
      s.sum[d] = first + d < lines.e.width ? W(lines.value(line, place, first + d)) : W(0);
    s.sum[line_stretch] = W(1);
    for (int d = 0; d <= line_stretch; ++d) s.distance[d] = W(0);
    return s;
  }
};

template <class W>
struct moment_product {
  ATTUNE_HD line_moments<W> operator()(line_moments<W> const& a, line_moments<W> const& b) const {
    if (a.line != b.line) return b;
    line_moments<W> s = b;
    for (int d = 0; d <= line_stretch; ++d) {
      s.distance[d] = (a.distance[d] + math::abs(W(b.at - a.at)) * a.sum[d]) + b.distance[d];
      s.sum[d] = a.sum[d] + b.sum[d];
    }
    return s;
  }
};

template <class W, class T, class Lines>
struct moment_query {
  Lines lines;
  divisor divided_by;
  line_moments<W> const* left;
  tensor<T> out, lse;
  index_t first;

  ATTUNE_HD void operator()(index_t n) const {
    query_task const t(n, lines.e);
    index_t const line = lines.line_of(t.b, t.h), keys = lines.e.keys;
    W const x = W(lines.q(t.b, t.h, t.i, 0));
    index_t const below = lines.before(line, x);
    W sums[line_stretch + 1];
    for (int d = 0; d <= line_stretch; ++d) {
      if (below == 0) {
        sums[d] = W(0);
        continue;
      }
      sums[d] = left[line * keys + below - 1].seen_from(x, d);
    }
    auto const done = finish_relu(divided_by, sums[line_stretch], W(double(keys)));
    for (int d = 0; d < line_stretch; ++d)
      if (first + d < lines.e.width) out(t.b, t.h, t.i, first + d) = T(sums[d] * done.value_factor);
    if (first == 0 && !lse.absent()) lse(t.b, t.h, t.i, 0) = T(done.lse);
  }
};

/// The arguments are checked.
template <class T, class Policy>
void run_sliced_relu(thrust_executor<T, Policy> const& exec, divisor divided_by, arrays<T> const& in, extents const& e,
                     results<T> const& to) {
  using W = wide<T>;
  using lines_type = key_lines<W, T>;
  sorted_scalars<W, Policy> keys(exec, in.sort_k);
  lines_type const lines{e, lines_type::count(e, false), keys.values(), keys.places(), in.v, in.sort_q};
  attune::exec_thrust::numbers<line_moments<W>, Policy> left(exec, lines.states()),
      scratch(exec, attune::exec_thrust::scan_scratch(lines.states()));
  for (index_t first = 0; first == 0 || first < e.width; first += line_stretch) {
    scan_lines(scan_end::lowest, exec, lines, moment_source<W>{first}, moment_product<W>{}, left.data(),
               scratch.data());
    attune::exec_thrust::for_each_task(
        exec, query_task::count(e),
        moment_query<W, T, lines_type>{lines, divided_by, left.data(), to.out, to.lse, first});
  }
}

}  // namespace attune::line::detail

namespace attune {

/// Writes out, and lse if given: full rows. Sums run in double for float tensors.
/// Rounding, errors, determinism: as line/thrust/laplacian.hpp and line/operators.hpp.
/// Cost:        a stable sort and, for every 8 features, a scan of Lk states of 20 numbers for each line. The states
///              are the scratch memory of a call.
template <class T, class Policy, class Normalizer, class Mask>
void forward(thrust_executor<T, Policy> const& exec, line::sliced_relu<Normalizer, Mask> const& op,
             inputs<line::sliced_relu<Normalizer, Mask>, tensor<T const>> const& in,
             outputs<line::sliced_relu<Normalizer, Mask>, T> const& to) {
  auto const c = line::detail::full_call("forward", exec, op, in, to.out.extents());
  detail::check_outputs("forward", to, c.problem());
  if (!c.empty())
    line::detail::run_sliced_relu(exec, Normalizer::traits.divided_by, c.arrays(), c.extents(),
                                  line::detail::results_of(to));
}

}  // namespace attune
