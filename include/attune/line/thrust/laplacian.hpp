// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   forward(thrust_on(policy), line::laplacian{tau}, {.v = V, .sort_q = S, .sort_k = K}, {.out = O})
//
// The sums over the keys left and right of a position are two scans of one monoid (line/laplacian/anchor.hpp). A query
// finds its position by binary search and merges the two sums like the parts of any split row.
#pragma once

#include <attune/line/laplacian/anchor.hpp>
#include <attune/line/thrust/lines.hpp>
#include <attune/operators/row_state.hpp>
#include <attune/policies/kernel/scalar.hpp>

namespace attune::line::detail {

/// The sums of some keys of a line, values first and then the mass, for positions beyond these keys.
template <class W>
struct line_sums {
  index_t line;
  anchor<W> from;
  W sums[line_stretch + 1];
};

template <class W>
struct line_source {
  index_t first;  ///< feature
  template <class Lines>
  ATTUNE_HD line_sums<W> operator()(Lines const& lines, index_t line, index_t rank) const {
    line_sums<W> s{line, {lines.keys_of(line)[rank], W(0)}, {}};
    index_t const place = lines.place_of(line, rank);
    for (int d = 0; d < line_stretch; ++d)
      s.sums[d] = first + d < lines.e.width ? W(lines.value(line, place, first + d)) : W(0);
    s.sums[line_stretch] = W(1);
    return s;
  }
};

/// The product of two neighboring runs of keys, the second beyond the first.
template <class W, class Lines>
struct line_product {
  Lines lines;
  parameter tau;
  ATTUNE_HD line_sums<W> operator()(line_sums<W> const& a, line_sums<W> const& b) const {
    if (a.line != b.line) return b;
    kernel::scalar_laplacian::bound<W> const kernel{
        tau.template value<W>(lines.batch_of(b.line), lines.head_of(b.line), 0)};
    auto const both = join(kernel, a.from, b.from);
    line_sums<W> s{b.line, both.from, {}};
    for (int d = 0; d <= line_stretch; ++d) s.sums[d] = both.first_factor * a.sums[d] + both.second_factor * b.sums[d];
    return s;
  }
};

/// The softmax row that both sides of x form, before it is finished.
template <class W>
using line_state = row_state<W, attune::exec_thrust::accumulators<W, line_stretch>>;

template <class Kernel, class W>
ATTUNE_HD line_state<W> seen_from(line_sums<W> const& s, Kernel const& kernel, W const& x) {
  using values = attune::exec_thrust::accumulators<W, line_stretch>;
  line_state<W> of{s.from.seen_from(kernel, x), s.sums[line_stretch], W(0),
                   math::infinity<W>(),         values(0, W(0)),      values(0, W(0))};
  for (int d = 0; d < line_stretch; ++d) of.acc[std::size_t(d)] = s.sums[d];
  return of;
}

/// Both scans of a set of lines, and the sums from them for a position between sources.
template <class W, class Lines>
struct line_sides {
  Lines lines;
  parameter tau;
  line_sums<W> const *left, *right;

  ATTUNE_HD kernel::scalar_laplacian::bound<W> of_head(index_t b, index_t h) const {
    return {tau.template value<W>(b, h, 0)};
  }
  /// The sums of the first (or last) `count` sources of a line; null if there are none.
  ATTUNE_HD line_sums<W> const* first(index_t line, index_t count) const {
    return count == 0 ? nullptr : left + (line * lines.e.keys + count - 1);
  }
  ATTUNE_HD line_sums<W> const* last(index_t line, index_t count) const {
    return count == 0 ? nullptr : right + (line * lines.e.keys + count - 1);
  }
  /// The softmax row at x, where `below` sources are before or at x. Calls use(d, out) for the features of the piece;
  /// returns the lse.
  template <class Kernel, class Use>
  ATTUNE_HD W finished(index_t line, index_t below, Kernel const& kernel, W const& x, Use const& use) const {
    normalizer::softmax::bound<W> const softmax{};
    index_t const keys = lines.e.keys;
    auto all = line_state<W>::template empty<normalizer::softmax>(softmax, line_stretch);
    if (auto const* s = first(line, below)) all.template merge<normalizer::softmax>(seen_from(*s, kernel, x));
    if (auto const* s = last(line, keys - below)) all.template merge<normalizer::softmax>(seen_from(*s, kernel, x));
    auto const done = finish_state<normalizer::softmax>(all, softmax, W(double(keys)));
    for (int d = 0; d < line_stretch; ++d) use(d, all.acc[std::size_t(d)]);
    return done.lse;
  }
};

/// The memory of both scans.
template <class W, class Policy>
class line_scans {
 public:
  template <class Exec>
  line_scans(Exec const& exec, index_t states)
      : left_(exec, states), right_(exec, states), scratch_(exec, attune::exec_thrust::scan_scratch(states)) {}
  template <class Exec, class Lines, class Source>
  line_sides<W, Lines> of(Exec const& exec, Lines const& lines, parameter const& tau, Source const& source) {
    line_product<W, Lines> const product{lines, tau};
    scan_lines(scan_end::lowest, exec, lines, source, product, left_.data(), scratch_.data());
    scan_lines(scan_end::highest, exec, lines, source, product, right_.data(), scratch_.data());
    return {lines, tau, left_.data(), right_.data()};
  }

 private:
  attune::exec_thrust::numbers<line_sums<W>, Policy> left_, right_, scratch_;
};

/// One query: both sides of it merged and finished.
template <class W, class T, class Lines>
struct line_query {
  line_sides<W, Lines> sides;
  tensor<T> out, lse;
  index_t first;

  ATTUNE_HD void operator()(index_t n) const {
    Lines const& lines = sides.lines;
    query_task const t(n, lines.e);
    index_t const line = lines.line_of(t.b, t.h);
    W const x = W(lines.q(t.b, t.h, t.i, 0));
    W const log_sum =
        sides.finished(line, lines.not_behind(line, x), sides.of_head(t.b, t.h), x, [&](int d, W const& value) {
          if (first + d < lines.e.width) out(t.b, t.h, t.i, first + d) = T(value);
        });
    if (first == 0 && !lse.absent()) lse(t.b, t.h, t.i, 0) = T(log_sum);
  }
};

/// The arguments are checked.
template <class T, class Policy>
void run_laplacian(thrust_executor<T, Policy> const& exec, parameter const& tau, arrays<T> const& in, extents const& e,
                   results<T> const& to) {
  using W = wide<T>;
  using lines_type = key_lines<W, T>;
  sorted_scalars<W, Policy> keys(exec, in.sort_k);
  lines_type const lines{e,        lines_type::count(e, tau.extents().head != 1), keys.values(), keys.places(), in.v,
                         in.sort_q};
  line_scans<W, Policy> scans(exec, lines.states());
  for (index_t first = 0; first == 0 || first < e.width; first += line_stretch) {
    auto const sides = scans.of(exec, lines, tau, line_source<W>{first});
    attune::exec_thrust::for_each_task(exec, query_task::count(e),
                                       line_query<W, T, lines_type>{sides, to.out, to.lse, first});
  }
}

}  // namespace attune::line::detail

namespace attune {

/// Writes out, and lse if given: full rows, tau shared or per head. Sums run in double for float tensors.
/// Rounding:    within the bound of line/operators.hpp; the order of the sums differs from the CPU executor.
/// Errors:      as on the CPU; a mask does not compile. On a device numbers are not checked.
/// Cost:        a stable sort and, for every 8 features, two scans of Lk states of 13 numbers for each line
///              (lines.hpp). The states are the scratch memory of a call.
/// Determinism: the same bits on every run and for any number of threads.
template <class T, class Policy, class Mask>
void forward(thrust_executor<T, Policy> const& exec, line::laplacian<Mask> const& op,
             inputs<line::laplacian<Mask>, tensor<T const>> const& in, outputs<line::laplacian<Mask>, T> const& to) {
  auto const c = line::detail::full_call("forward", exec, op, in, to.out.extents());
  line::detail::require_bandwidth_of_head("forward", op);
  detail::check_outputs("forward", to, c.problem());
  if (!c.empty()) line::detail::run_laplacian(exec, op.tau, c.arrays(), c.extents(), line::detail::results_of(to));
}

}  // namespace attune
