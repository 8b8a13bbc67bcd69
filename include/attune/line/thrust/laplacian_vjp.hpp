// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   g = vjp(thrust_on(policy), line::laplacian{tau}, {.v = V, .sort_q = S, .sort_k = K}, {.out = dO})
//
// da_ij = w_ij (<do_i, v_j> - R_i), R_i = <do_i, out_i> - dlse_i. For gradients of queries the sources are the keys,
// with rows (v, 1) and logit 0. For gradients of keys and values the sources are the queries, with rows (do, -R) and
// logit -lse. Both use the scans of the forward pass. One task owns each number, so there are no atomics.
#pragma once

#include <attune/line/thrust/laplacian.hpp>

namespace attune::line::detail {

/// Numbers stored for each of B H Lq rows between the scans: sums over pieces of features.
template <class W>
struct query_numbers {
  W *lse, *gain;     ///< gain: R
  W *pull, *weight;  ///< sums right of the query minus sums left of it: of <do, v> w, and of w
};

/// One piece of features of one query.
template <class W, class T, class Lines>
struct query_gradient_program {
  line_sides<W, Lines> sides;
  tensor<T const> d_out;
  query_numbers<W> to;
  index_t first;

  ATTUNE_HD void operator()(index_t n) const {
    Lines const& lines = sides.lines;
    query_task const t(n, lines.e);
    index_t const line = lines.line_of(t.b, t.h), keys = lines.e.keys;
    W const x = W(lines.q(t.b, t.h, t.i, 0));
    index_t const before = lines.before(line, x), below = lines.not_behind(line, x);
    auto const kernel = sides.of_head(t.b, t.h);
    W const lse = sides.finished(line, below, kernel, x, [&](int d, W const& out) {
      if (first + d < lines.e.width) to.gain[n] = to.gain[n] + W(d_out(t.b, t.h, t.i, first + d)) * out;
    });
    if (first == 0) to.lse[n] = lse;
    // Equal scalars give no gradient: strictly before, strictly behind.
    auto const pull = [&](line_sums<W> const* s, W const& sign) {
      if (s == nullptr) return;
      W const mass = sign * normalizer::softmax::bound<W>{}.earned(s->from.seen_from(kernel, x), lse);
      for (int d = 0; d < line_stretch; ++d)
        if (first + d < lines.e.width)
          to.pull[n] = to.pull[n] + mass * (W(d_out(t.b, t.h, t.i, first + d)) * s->sums[d]);
      if (first == 0) to.weight[n] = to.weight[n] + mass * s->sums[line_stretch];
    };
    pull(sides.first(line, before), W(-1));
    pull(sides.last(line, keys - below), W(1));
  }
};

/// R, and the gradient by the query's scalar, in `to.pull` in units of 1 / tau.
template <class W, class T>
struct query_finish_program {
  extents e;
  parameter tau;
  tensor<T const> d_lse;
  tensor<T> d_q;
  query_numbers<W> to;
  ATTUNE_HD void operator()(index_t n) const {
    query_task const t(n, e);
    if (!d_lse.absent()) to.gain[n] = to.gain[n] - W(d_lse(t.b, t.h, t.i, 0));
    to.pull[n] = to.pull[n] - to.gain[n] * to.weight[n];
    if (!d_q.absent()) d_q(t.b, t.h, t.i, 0) = T(to.pull[n] / tau.template value<W>(t.b, t.h, 0));
  }
};

/// A query as a source: its `values` are do.
template <class W>
struct pull_source {
  W const *lse, *gain;
  index_t first;
  template <class Lines>
  ATTUNE_HD line_sums<W> operator()(Lines const& lines, index_t line, index_t rank) const {
    index_t const place = lines.place_of(line, rank), row = line * lines.e.keys + place;
    line_sums<W> s{line, {lines.keys_of(line)[rank], -lse[row]}, {}};
    for (int d = 0; d < line_stretch; ++d)
      s.sums[d] = first + d < lines.e.width ? W(lines.value(line, place, first + d)) : W(0);
    s.sums[line_stretch] = -gain[row];
    return s;
  }
};

/// Task (b, h, j): the gradient from the queries of head h to the scalar of key j, in units of 1 / tau.
template <class W, class T, class Lines>
struct key_gradient_program {
  line_sides<W, Lines> sides;  ///< over queries
  extents e;
  tensor<T const> k, v;
  W* by_key;
  index_t first;
  ATTUNE_HD void operator()(index_t n) const {
    index_t const j = n % e.keys, h = n / e.keys % e.heads, b = n / (e.keys * e.heads),
                  line = sides.lines.line_of(b, h);
    W const x = W(k(b, e.key_head(h), j, 0));
    auto const kernel = sides.of_head(b, h);
    auto const pull = [&](line_sums<W> const* s, W const& sign) {
      if (s == nullptr) return;
      W sum = first == 0 ? s->sums[line_stretch] : W(0);
      for (int d = 0; d < line_stretch; ++d)
        if (first + d < e.width) sum = sum + W(v(b, e.value_head(h), j, first + d)) * s->sums[d];
      by_key[n] = by_key[n] + sign * math::exp(s->from.seen_from(kernel, x)) * sum;
    };
    pull(sides.first(line, sides.lines.before(line, x)), W(-1));
    pull(sides.last(line, e.queries - sides.lines.not_behind(line, x)), W(1));
  }
};

/// Task (b, value head, j): one piece of the gradient of a value.
template <class W, class T, class Lines>
struct value_gradient_program {
  line_sides<W, Lines> sides;  ///< over queries
  extents e;
  tensor<T const> k;
  tensor<T> d_v;
  index_t first;
  ATTUNE_HD void operator()(index_t n) const {
    index_t const j = n % e.keys, g = n / e.keys % e.value_heads, b = n / (e.keys * e.value_heads),
                  each = e.heads / e.value_heads;
    W sum[line_stretch];
    for (int d = 0; d < line_stretch; ++d) sum[d] = W(0);
    for (index_t h = g * each; h < (g + 1) * each; ++h) {
      index_t const line = sides.lines.line_of(b, h);
      W const x = W(k(b, e.key_head(h), j, 0));
      index_t const below = sides.lines.not_behind(line, x);
      auto const kernel = sides.of_head(b, h);
      auto const add = [&](line_sums<W> const* s) {
        if (s == nullptr) return;
        W const mass = math::exp(s->from.seen_from(kernel, x));
        for (int d = 0; d < line_stretch; ++d) sum[d] = sum[d] + mass * s->sums[d];
      };
      add(sides.first(line, below));
      add(sides.last(line, e.queries - below));
    }
    for (int d = 0; d < line_stretch; ++d)
      if (first + d < e.width) d_v(b, g, j, first + d) = T(sum[d]);
  }
};

/// Task (b, h): the gradient by the head's bandwidth. Scores do not change when all scalars and tau are multiplied by
/// one factor, nor when all scalars are shifted: tau ds/dtau = -(q - k) ds/dq.
template <class W, class T>
struct bandwidth_program {
  extents e;
  parameter tau;
  tensor<T const> q, k;
  W const *by_query, *by_key;
  W* to;
  ATTUNE_HD void operator()(index_t n) const {
    index_t const h = n % e.heads, b = n / e.heads, g = e.key_head(h);
    W const origin = e.keys > 0 ? W(k(b, g, e.keys / 2, 0)) : W(0), unit = tau.template value<W>(b, h, 0);
    W sum(0);
    for (index_t i = 0; i < e.queries; ++i) sum = sum - (W(q(b, h, i, 0)) - origin) * by_query[n * e.queries + i];
    for (index_t j = 0; j < e.keys; ++j) sum = sum - (W(k(b, g, j, 0)) - origin) * by_key[n * e.keys + j];
    to[n] = sum / (unit * unit);
  }
};
/// The arguments are checked. Writes the gradients where d has tensors. Returns the gradients by the bandwidth of each
/// (batch, head), in the memory where programs run.
template <class T, class Policy>
attune::exec_thrust::numbers<wide<T>, Policy> run_laplacian_vjp(thrust_executor<T, Policy> const& exec,
                                                                parameter const& tau, arrays<T> const& in,
                                                                extents const& e, result_cotangents<T> const& by,
                                                                gradient_views<T> const& d) {
  using W = wide<T>;
  using lines_type = key_lines<W, T>;
  using memory = attune::exec_thrust::numbers<W, Policy>;
  using attune::exec_thrust::for_each_task;
  index_t const rows = query_task::count(e);
  memory lse(exec, rows), gain(exec, rows), pull(exec, rows), weight(exec, rows),
      by_key(exec, e.batch * e.heads * e.keys);
  query_numbers<W> const numbers{lse.data(), gain.data(), pull.data(), weight.data()};
  {
    sorted_scalars<W, Policy> keys(exec, in.sort_k);
    lines_type const lines{e,        lines_type::count(e, tau.extents().head != 1), keys.values(), keys.places(), in.v,
                           in.sort_q};
    line_scans<W, Policy> scans(exec, lines.states());
    for (index_t first = 0; first == 0 || first < e.width; first += line_stretch)
      for_each_task(exec, rows,
                    query_gradient_program<W, T, lines_type>{scans.of(exec, lines, tau, line_source<W>{first}), by.out,
                                                             numbers, first});
  }
  for_each_task(exec, rows, query_finish_program<W, T>{e, tau, by.lse, d.sort_q, numbers});

  sorted_scalars<W, Policy> queries(exec, in.sort_q);
  extents const turned{e.batch, e.heads, e.heads, e.heads, e.keys, e.queries, e.width};
  lines_type const lines{turned, e.heads, queries.values(), queries.places(), by.out, in.sort_k};
  line_scans<W, Policy> scans(exec, lines.states());
  for (index_t first = 0; first == 0 || first < e.width; first += line_stretch) {
    auto const sides = scans.of(exec, lines, tau, pull_source<W>{lse.data(), gain.data(), first});
    for_each_task(exec, e.batch * e.heads * e.keys,
                  key_gradient_program<W, T, lines_type>{sides, e, in.sort_k, in.v, by_key.data(), first});
    if (!d.v.absent())
      for_each_task(exec, e.batch * e.value_heads * e.keys,
                    value_gradient_program<W, T, lines_type>{sides, e, in.sort_k, d.v, first});
  }
  if (!d.sort_k.absent())
    for_each_task(exec, e.batch * e.key_heads * e.keys, shared_key_program<W, T>{e, tau, by_key.data(), d.sort_k});
  memory of_heads(exec, e.batch * e.heads);
  for_each_task(exec, e.batch * e.heads,
                bandwidth_program<W, T>{e, tau, in.sort_q, in.sort_k, pull.data(), by_key.data(), of_heads.data()});
  return of_heads;
}

}  // namespace attune::line::detail

namespace attune {

/// The gradients of <d.out, out> + <d.lse, lse>, in host memory: full rows, tau shared or per head. Runs the forward
/// pass again; nothing needs to be saved.
/// Errors:      as on the CPU; a mask does not compile. On a device numbers are not checked.
/// Cost:        a stable sort of keys and one of queries; for every 8 features two scans of the keys and two of each
///              head's queries; one long sum per head for the gradient by the bandwidth. Scratch: the states of those
///              scans, 4 numbers per query, B H Lk numbers.
/// Determinism: as forward.
template <class T, class Policy, class Mask>
dense_gradients<T> vjp(thrust_executor<T, Policy> const& exec, line::laplacian<Mask> const& op,
                       inputs<line::laplacian<Mask>, tensor<T const>> const& in,
                       cotangents<line::laplacian<Mask>, tensor<T const>> const& d) {
  auto const c = line::detail::full_call("vjp", exec, op, in, detail::output_shape(in));
  line::detail::require_bandwidth_of_head("vjp", op);
  detail::check_cotangents("vjp", d, c.problem());
  dense_gradients<T> to = c.blank();
  if (c.empty()) return to;
  line::detail::with_gradients(exec, to, [&](line::detail::gradient_views<T> const& views) {
    auto const by_tau = line::detail::run_laplacian_vjp(exec, op.tau, c.arrays(), c.extents(),
                                                        line::detail::cotangents_of<T>(d), views);
    c.give_bandwidth(by_tau.copied(), to, exec.memory);
  });
  return to;
}

}  // namespace attune
