// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   out_i = softmax_j(c <q_i, k_j> - (sort_q_i - sort_k_j)^2 / tau_i) v      over visible keys, by windows in key order
//
// Scores with a dot product do not factorise along the line, but keys far away on it still cannot matter: with |c <q,
// k>| <= B and a row of mass Z, the n keys beyond distance d hold at most n e^(B - d^2/tau) of it. What is left is
// computed by the fused CPU executor.
#pragma once

#include <attune/sorted/hybrid_head.hpp>
#include <attune/sorted/workers.hpp>

namespace attune::sorted {

namespace detail {

template <class T>
extents checked_hybrid(char const* function, windowed_call const& op, hybrid_arrays<T> const& in) {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                "attune: sorted::hybrid runs on the CPU executor: float and double tensors only");
  extents const e = checked(function, arrays<T>{in.sort_q, in.sort_k, in.v});
  op.sees.check(function, e.queries, e.keys);
  attune::detail::check_parameter<T>(function, "tau", op.tau, domain::positive, e.batch, e.heads, e.queries);
  attune::detail::check_parameter<T>(function, "scale", op.scale, domain::real, e.batch, e.heads, e.queries);
  if (op.rule.kind == window_kind::certified) check_tolerance(function, op.rule.tolerance);
  if (op.rule.kind == window_kind::neighbours && op.rule.keys < 1)
    throw error(function, "keys", attune::detail::text("the value ", op.rule.keys), "at least 1");
  if (op.rule.kind == window_kind::radius && !(op.rule.eps > 0 && op.rule.eps < 1))
    throw error(function, "eps", attune::detail::text("the value ", op.rule.eps), "a number in (0, 1)");
  if (in.q.absent() != in.k.absent())
    throw error(function, in.q.absent() ? "q" : "k", "no data",
                "both vectors, or neither: then scores are those of scalar_sort");
  if (!in.q.absent()) {
    index_t const heads = in.k.extents().head, width = in.q.extents().feature;
    require_shape(function, "q", in.q, e.query_side(width), false);
    require_shape(function, "k", in.k, {e.batch, heads, e.keys, width}, false);
    if (heads < 1 || e.heads % heads != 0)
      throw error(function, "k", attune::detail::text(heads, " heads"), attune::detail::text("a divisor of ", e.heads));
  }
  auto const check_sink = [&](char const* name, tensor<T const> const& x, index_t features) {
    if (x.absent()) return;
    if (x.extents().head != 1) require_shape(function, name, x, {1, e.heads, 1, features}, false);
    if (x.extents().head == 1) require_shape(function, name, x, {1, 1, 1, features}, false);
  };
  check_sink("sink_k", in.sink_k, 1);
  check_sink("sink_v", in.sink_v, e.width);
  if (!in.sink_k.absent()) require_finite(function, "sink_k", in.sink_k);
  if (in.sink_k.absent() && !in.sink_v.absent()) throw error(function, "sink_k", "no data", "the sort key of the sink");
  return e;
}

/// Heads that share vectors run one after the other too.
template <class T>
extents tasks_of(extents e, hybrid_arrays<T> const& in) {
  if (!in.k.absent()) e.key_heads = std::gcd(e.key_heads, in.k.extents().head);
  return e;
}

template <class T, class Arch, class F>
void with_head(windowed_call const& op, hybrid_arrays<T> const& in, extents const& e, index_t b, index_t h,
               workers const& who, F const& f) {
  if (in.q.absent()) {
    hybrid_head<T, Arch, scalar_scores> head(op, in, e, b, h, who);
    f(head);
  } else {
    hybrid_head<T, Arch, hybrid_scores> head(op, in, e, b, h, who);
    f(head);
  }
}

/// Sums numbers per (batch, head, query) to the granularity of `to`.
template <class T>
void write_shared(extents const& e, std::vector<double> const& rows, index_t queries, index_t features,
                  tensor<T> const& to) {
  if (to.absent()) return;
  shape const x = to.extents();
  std::vector<double> sums(std::size_t(x.size()), 0.0);
  auto const at = [&](index_t b, index_t h, index_t i, index_t f) {
    return ((((x.batch == 1 ? 0 : b) * x.head + (x.head == 1 ? 0 : h)) * x.position + (x.position == 1 ? 0 : i)) *
            x.feature) +
           f;
  };
  std::size_t n = 0;
  for (index_t b = 0; b < e.batch; ++b)
    for (index_t h = 0; h < e.heads; ++h)
      for (index_t i = 0; i < queries; ++i)
        for (index_t f = 0; f < features; ++f) sums[std::size_t(at(b, h, i, f))] += rows[n++];
  for (index_t b = 0; b < x.batch; ++b)
    for (index_t h = 0; h < x.head; ++h)
      for (index_t i = 0; i < x.position; ++i)
        for (index_t f = 0; f < features; ++f) to(b, h, i, f) = T(sums[std::size_t(at(b, h, i, f))]);
}

/// (1 or batch, 1 or heads, 1 or queries, features)
template <class T>
void require_granularity(char const* function, char const* argument, tensor<T> const& x, shape const& most) {
  if (x.absent()) return;
  shape const e = x.extents();
  if ((e.batch != 1 && e.batch != most.batch) || (e.head != 1 && e.head != most.head) ||
      (e.position != 1 && e.position != most.position) || e.feature != most.feature)
    throw error(function, argument, attune::detail::text("shape ", to_string(e)),
                attune::detail::text("shape ", to_string(most), ", or 1 on an axis that is shared"));
  attune::detail::require_distinct(function, argument, x);
}

}  // namespace detail

/// Writes out, and lse and discarded if they are there. Returns the worst row's certificate.
/// Errors: throws attune::error on shapes that do not fit, scalars that are not finite, tau that is not positive,
///         documents whose ids do not ascend, a tolerance outside [1e-12, 1); nothing is written then.
template <class T, class Arch = xsimd::default_arch, detail::windowed Op>
hybrid_certificate forward(Op const& op, hybrid_arrays<T> const& in, hybrid_results<T> const& to,
                           workers const& who = {}) {
  detail::windowed_call const call = detail::call_of(op);
  detail::extents const e = detail::checked_hybrid("sorted::forward(hybrid)", call, in);
  detail::check_results("sorted::forward(hybrid)", e, results<T>{to.out, to.lse});
  detail::require_shape("sorted::forward(hybrid)", "discarded", to.discarded, e.query_side(1), true);
  return detail::report_of_heads<hybrid_certificate>(who, detail::tasks_of(e, in), [&](index_t b, index_t h) {
    hybrid_certificate certificate;
    detail::with_head<T, Arch>(call, in, e, b, h, who, [&](auto& head) {
      certificate = head.forward();
      head.write(to);
    });
    return certificate;
  });
}

/// The gradients of <by.out, out> + <by.lse, lse>, exact for the approximate weights up to rounding. Runs the forward
/// pass again: nothing has to be saved.
template <class T, class Arch = xsimd::default_arch, detail::windowed Op>
hybrid_certificate vjp(Op const& op, hybrid_arrays<T> const& in, cotangents<T> const& by, hybrid_gradients<T> const& d,
                       workers const& who = {}) {
  char const* const name = "sorted::vjp(hybrid)";
  detail::windowed_call const call = detail::call_of(op);
  detail::extents const e = detail::checked_hybrid(name, call, in);
  detail::check_gradients(name, e, by, gradients<T>{d.sort_q, d.sort_k, d.v, {}});
  index_t const width = in.q.extents().feature;
  if (in.q.absent() && !(d.q.absent() && d.k.absent() && d.scale.absent()))
    throw error(name, "d.q, d.k or d.scale", "a tensor", "none: there are no vectors");
  if (in.sink_k.absent() && !(d.sink_k.absent() && d.sink_v.absent()))
    throw error(name, "d.sink_k or d.sink_v", "a tensor", "none: there is no sink");
  detail::require_shape(name, "d.q", d.q, e.query_side(width), true);
  detail::require_shape(name, "d.k", d.k, in.k.extents(), true);
  for (auto const& [argument, x] : {std::pair("d.tau", d.tau), std::pair("d.scale", d.scale)})
    detail::require_granularity(name, argument, x, e.query_side(1));
  detail::require_granularity(name, "d.sink_k", d.sink_k, {1, e.heads, 1, 1});
  detail::require_granularity(name, "d.sink_v", d.sink_v, {1, e.heads, 1, e.width});
  detail::clear(d.sort_k);
  detail::clear(d.v);
  detail::clear(d.k);
  index_t const heads = e.batch * e.heads;
  std::vector<double> const zero(std::size_t(heads * e.queries), 0.0);
  detail::row_parameters by_row{zero, zero};
  detail::sink_parameters by_sink{std::vector<double>(std::size_t(heads), 0.0),
                                  std::vector<double>(std::size_t(heads * e.width), 0.0)};
  auto const worst =
      detail::report_of_heads<hybrid_certificate>(who, detail::tasks_of(e, in), [&](index_t b, index_t h) {
        hybrid_certificate certificate;
        detail::with_head<T, Arch>(call, in, e, b, h, who, [&](auto& head) {
          certificate = head.forward();
          head.backward(by, d, by_row, by_sink);
        });
        return certificate;
      });
  detail::write_shared(e, by_row.tau, e.queries, 1, d.tau);
  detail::write_shared(e, by_row.scale, e.queries, 1, d.scale);
  detail::write_shared(e, by_sink.key, 1, 1, d.sink_k);
  detail::write_shared(e, by_sink.value, 1, e.width, d.sink_v);
  return worst;
}

}  // namespace attune::sorted
