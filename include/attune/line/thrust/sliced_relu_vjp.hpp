// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   g = vjp(thrust_on(policy), line::sliced_relu{}, {.v = V, .sort_q = S, .sort_k = K}, {.out = dO})
//
// dw_ij = f_i (<do_i, v_j> - R_i), where f is the factor of the row, and R = 0 unless the row is divided by its sum.
// Gradients of queries use the scan of the forward pass. Gradients of keys and values use a scan from the other end,
// whose sources are the queries, with rows f (do, -R).
#pragma once

#include <attune/line/thrust/sliced_relu.hpp>

namespace attune::line::detail {

/// Numbers stored for each of B H Lq rows between the scans: sums over pieces of features.
template <class W>
struct relu_numbers {
  W *factor, *gain;  ///< f and R
  W *pull, *count;   ///< of <do, v> and of 1, over the keys on the left
};

template <class W, class T, class Lines>
struct relu_query_program {
  Lines lines;
  divisor divided_by;
  line_moments<W> const* left;
  tensor<T const> d_out;
  relu_numbers<W> to;
  index_t first;

  ATTUNE_HD void operator()(index_t n) const {
    query_task const t(n, lines.e);
    index_t const line = lines.line_of(t.b, t.h), keys = lines.e.keys;
    W const x = W(lines.q(t.b, t.h, t.i, 0));
    index_t const below = lines.before(line, x);
    line_moments<W> const* const s = below == 0 ? nullptr : left + (line * keys + below - 1);
    W const mass = s == nullptr ? W(0) : s->seen_from(x, line_stretch);
    W const factor = finish_relu(divided_by, mass, W(double(keys))).value_factor;
    if (first == 0) {
      to.factor[n] = factor;
      to.count[n] = s == nullptr ? W(0) : s->sum[line_stretch];
    }
    if (s == nullptr) return;
    for (int d = 0; d < line_stretch; ++d) {
      if (first + d >= lines.e.width) continue;
      W const by = W(d_out(t.b, t.h, t.i, first + d));
      to.pull[n] = to.pull[n] + by * s->sum[d];
      to.gain[n] = to.gain[n] + by * (s->seen_from(x, d) * factor);
    }
  }
};

template <class W, class T>
struct relu_finish_program {
  extents e;
  divisor divided_by;
  tensor<T const> d_lse;
  tensor<T> d_q;
  relu_numbers<W> to;
  ATTUNE_HD void operator()(index_t n) const {
    query_task const t(n, e);
    W const by_log_sum = d_lse.absent() ? W(0) : W(d_lse(t.b, t.h, t.i, 0));
    to.gain[n] = divided_by == divisor::sum ? W(to.gain[n] - by_log_sum) : W(0);
    if (!d_q.absent()) d_q(t.b, t.h, t.i, 0) = T(to.factor[n] * (to.pull[n] - to.gain[n] * to.count[n]));
  }
};

/// A query as a source: its values are f do.
template <class W>
struct relu_pull_source {
  W const *factor, *gain;
  index_t first;
  template <class Lines>
  ATTUNE_HD line_moments<W> operator()(Lines const& lines, index_t line, index_t rank) const {
    index_t const place = lines.place_of(line, rank), row = line * lines.e.keys + place;
    line_moments<W> s{line, lines.keys_of(line)[rank], {}, {}};
    for (int d = 0; d < line_stretch; ++d)
      s.sum[d] = first + d < lines.e.width ? W(factor[row] * W(lines.value(line, place, first + d))) : W(0);
    s.sum[line_stretch] = -(factor[row] * gain[row]);
    for (int d = 0; d <= line_stretch; ++d) s.distance[d] = W(0);
    return s;
  }
};

/// The gradient from the queries to the right of a key.
template <class W, class T, class Lines>
struct relu_right {
  Lines lines;  ///< over queries
  extents e;
  tensor<T const> k;
  line_moments<W> const* right;
  ATTUNE_HD line_moments<W> const* operator()(index_t b, index_t h, W const& x) const {
    index_t const line = lines.line_of(b, h), behind = e.queries - lines.not_behind(line, x);
    return behind == 0 ? nullptr : right + (line * e.queries + behind - 1);
  }
};
/// Task (b, h, j).
template <class W, class T, class Lines>
struct relu_key_program {
  relu_right<W, T, Lines> of;
  tensor<T const> v;
  W* by_key;
  index_t first;
  ATTUNE_HD void operator()(index_t n) const {
    extents const& e = of.e;
    index_t const j = n % e.keys, h = n / e.keys % e.heads, b = n / (e.keys * e.heads);
    auto const* const s = of(b, h, W(of.k(b, e.key_head(h), j, 0)));
    if (s == nullptr) return;
    W sum = first == 0 ? s->sum[line_stretch] : W(0);
    for (int d = 0; d < line_stretch; ++d)
      if (first + d < e.width) sum = sum + W(v(b, e.value_head(h), j, first + d)) * s->sum[d];
    by_key[n] = by_key[n] - sum;
  }
};
/// Task (b, value head, j).
template <class W, class T, class Lines>
struct relu_value_program {
  relu_right<W, T, Lines> of;
  tensor<T> d_v;
  index_t first;
  ATTUNE_HD void operator()(index_t n) const {
    extents const& e = of.e;
    index_t const j = n % e.keys, g = n / e.keys % e.value_heads, b = n / (e.keys * e.value_heads),
                  each = e.heads / e.value_heads;
    W sum[line_stretch];
    for (int d = 0; d < line_stretch; ++d) sum[d] = W(0);
    for (index_t h = g * each; h < (g + 1) * each; ++h) {
      W const x = W(of.k(b, e.key_head(h), j, 0));
      if (auto const* const s = of(b, h, x))
        for (int d = 0; d < line_stretch; ++d) sum[d] = sum[d] + s->seen_from(x, d);
    }
    for (int d = 0; d < line_stretch; ++d)
      if (first + d < e.width) d_v(b, g, j, first + d) = T(sum[d]);
  }
};

/// The arguments are checked. Writes the gradients where d has tensors.
template <class T, class Policy>
void run_sliced_relu_vjp(thrust_executor<T, Policy> const& exec, divisor divided_by, arrays<T> const& in,
                         extents const& e, result_cotangents<T> const& by, gradient_views<T> const& d) {
  using W = wide<T>;
  using lines_type = key_lines<W, T>;
  using memory = attune::exec_thrust::numbers<W, Policy>;
  using states = attune::exec_thrust::numbers<line_moments<W>, Policy>;
  using attune::exec_thrust::for_each_task;
  index_t const rows = query_task::count(e);
  memory factor(exec, rows), gain(exec, rows), pull(exec, rows), count(exec, rows),
      by_key(exec, e.batch * e.heads * e.keys);
  relu_numbers<W> const numbers{factor.data(), gain.data(), pull.data(), count.data()};
  {
    sorted_scalars<W, Policy> keys(exec, in.sort_k);
    lines_type const lines{e, lines_type::count(e, false), keys.values(), keys.places(), in.v, in.sort_q};
    states left(exec, lines.states()), scratch(exec, attune::exec_thrust::scan_scratch(lines.states()));
    for (index_t first = 0; first == 0 || first < e.width; first += line_stretch) {
      scan_lines(scan_end::lowest, exec, lines, moment_source<W>{first}, moment_product<W>{}, left.data(),
                 scratch.data());
      for_each_task(exec, rows,
                    relu_query_program<W, T, lines_type>{lines, divided_by, left.data(), by.out, numbers, first});
    }
  }
  for_each_task(exec, rows, relu_finish_program<W, T>{e, divided_by, by.lse, d.sort_q, numbers});

  sorted_scalars<W, Policy> queries(exec, in.sort_q);
  extents const turned{e.batch, e.heads, e.heads, e.heads, e.keys, e.queries, e.width};
  lines_type const lines{turned, e.heads, queries.values(), queries.places(), by.out, in.sort_k};
  states right(exec, lines.states()), scratch(exec, attune::exec_thrust::scan_scratch(lines.states()));
  relu_right<W, T, lines_type> const of{lines, e, in.sort_k, right.data()};
  for (index_t first = 0; first == 0 || first < e.width; first += line_stretch) {
    scan_lines(scan_end::highest, exec, lines, relu_pull_source<W>{factor.data(), gain.data(), first},
               moment_product<W>{}, right.data(), scratch.data());
    for_each_task(exec, e.batch * e.heads * e.keys, relu_key_program<W, T, lines_type>{of, in.v, by_key.data(), first});
    if (!d.v.absent())
      for_each_task(exec, e.batch * e.value_heads * e.keys, relu_value_program<W, T, lines_type>{of, d.v, first});
  }
  if (!d.sort_k.absent())
    for_each_task(exec, e.batch * e.key_heads * e.keys,
                  shared_key_program<W, T>{e, parameter(1), by_key.data(), d.sort_k});
}

}  // namespace attune::line::detail

namespace attune {

/// The gradients of <d.out, out> + <d.lse, lse>, in host memory: full rows. Runs the forward pass again; nothing needs
/// to be saved.
/// Errors, cost, determinism: as line/thrust/laplacian_vjp.hpp, with one scan instead of two.
template <class T, class Policy, class Normalizer, class Mask>
dense_gradients<T> vjp(thrust_executor<T, Policy> const& exec, line::sliced_relu<Normalizer, Mask> const& op,
                       inputs<line::sliced_relu<Normalizer, Mask>, tensor<T const>> const& in,
                       cotangents<line::sliced_relu<Normalizer, Mask>, tensor<T const>> const& d) {
  auto const c = line::detail::full_call("vjp", exec, op, in, detail::output_shape(in));
  detail::check_cotangents("vjp", d, c.problem());
  dense_gradients<T> to = c.blank();
  if (c.empty()) return to;
  line::detail::with_gradients(exec, to, [&](line::detail::gradient_views<T> const& views) {
    line::detail::run_sliced_relu_vjp(exec, Normalizer::traits.divided_by, c.arrays(), c.extents(),
                                      line::detail::cotangents_of<T>(d), views);
  });
  return to;
}

}  // namespace attune
