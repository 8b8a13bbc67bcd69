// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   sorted::forward(thrust_on(policy), sorted::sliced_relu{divisor::one}, {sort_q, sort_k, v}, {out, lse})
//
// Left of a query the kernel is a polynomial: moments of order 0 and 1 about the last key are a monoid, one scan gives
// all sums.
#pragma once

#include <attune/sorted/relu_rows.hpp>
#include <attune/sorted/thrust/lines.hpp>

namespace attune::sorted {

namespace detail {

/// sum row and sum |at - k| row over some keys of a line, of values and of 1; `at` is the last of them.
template <class W>
struct line_moments {
  index_t line;
  W at, sum[line_stretch + 1], distance[line_stretch + 1];

  /// sum |x - k| row number d for x beyond them.
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

}  // namespace detail

/// Writes out, and lse if it is there: full visibility. Sums run in double for float tensors.
/// Rounding, errors, determinism: as sorted/thrust/laplacian.hpp and sorted/operators.hpp.
/// Cost:        a stable sort and, for every 8 features, a scan of Lk states of 20 numbers for each line, the scratch
///              of a call.
template <class T, class Policy>
void forward(thrust_executor<T, Policy> const& exec, sliced_relu const& op, std::type_identity_t<arrays<T>> const& in,
             std::type_identity_t<results<T>> const& to) {
  using W = detail::wide<T>;
  using lines_type = detail::key_lines<W, T>;
  constexpr char const* name = "sorted::forward(sliced_relu)";
  detail::extents const e = detail::checked(name, in, exec.memory);
  detail::check_results(name, e, to);
  detail::check_lse(name, "lse", op, to.lse.absent());
  detail::require_full(name, op.sees);
  detail::sorted_scalars<W, Policy> keys(exec, in.sort_k);
  lines_type const lines{e, lines_type::count(e, false), keys.values(), keys.places(), in.v, in.sort_q};
  attune::exec_thrust::numbers<detail::line_moments<W>, Policy> left(exec, lines.states()),
      scratch(exec, attune::exec_thrust::scan_scratch(lines.states()));
  for (index_t first = 0; first == 0 || first < e.width; first += detail::line_stretch) {
    detail::scan_lines(detail::scan_end::lowest, exec, lines, detail::moment_source<W>{first},
                       detail::moment_product<W>{}, left.data(), scratch.data());
    attune::exec_thrust::for_each_task(
        exec, detail::query_task::count(e),
        detail::moment_query<W, T, lines_type>{lines, op.divided_by, left.data(), to.out, to.lse, first});
  }
}

}  // namespace attune::sorted
