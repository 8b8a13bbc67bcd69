// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   out_i = softmax_j(c <q_i, k_j> - (sort_q_i - sort_k_j)^2 / tau_i) v      over visible keys, by windows in key order
//
// Scores with a dot product do not factorize along the line, but keys far away on it still have little weight. With |c
// <q, k>| <= B and a row of mass Z, the n keys beyond distance d hold at most n e^(B - d^2/tau) of it. The fused CPU
// executor computes the remaining keys.
#pragma once

#include <attune/line/call/workers.hpp>
#include <attune/line/windowed/head.hpp>

namespace attune::line::detail {

/// Extents for tasks: heads that share vectors also run one after the other.
template <class T>
extents tasks_of(extents e, windowed_arrays<T> const& in) {
  if (!in.k.absent()) e.key_heads = std::gcd(e.key_heads, in.k.extents().head);
  return e;
}

template <class T, class Arch, class F>
void with_head(windowed_call const& op, sight const& sees, windowed_arrays<T> const& in, extents const& e, index_t b,
               index_t h, workers const& who, F const& f) {
  if (in.q.absent()) {
    windowed_head<T, Arch, scalar_scores> head(op, sees, in, e, b, h, who);
    f(head);
  } else {
    windowed_head<T, Arch, hybrid_scores> head(op, sees, in, e, b, h, who);
    f(head);
  }
}

/// Sums numbers per (batch, head, query) down to the granularity of `to`.
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

/// The arguments are checked; sees(b, h) is the sight of a head.
template <class T, class Arch, class Sees>
window_certificate run_windowed(windowed_call const& op, Sees const& sees, windowed_arrays<T> const& in,
                                extents const& e, windowed_results<T> const& to, workers const& who) {
  return report_of_heads<window_certificate>(who, tasks_of(e, in), [&](index_t b, index_t h) {
    window_certificate certificate;
    sight const seen = sees(b, h);
    with_head<T, Arch>(op, seen, in, e, b, h, who, [&](auto& head) {
      certificate = head.forward();
      head.write(to);
    });
    return certificate;
  });
}
/// Exact for the approximate weights, up to rounding. Runs the forward pass again; nothing needs to be saved.
template <class T, class Arch, class Sees>
window_certificate run_windowed_vjp(windowed_call const& op, Sees const& sees, windowed_arrays<T> const& in,
                                    extents const& e, result_cotangents<T> const& by, windowed_gradients<T> const& d,
                                    workers const& who) {
  clear(d.sort_k);
  clear(d.v);
  clear(d.k);
  index_t const heads = e.batch * e.heads;
  std::vector<double> const zero(std::size_t(heads * e.queries), 0.0);
  row_parameters by_row{zero, zero};
  sink_parameters by_sink{std::vector<double>(std::size_t(heads), 0.0),
                          std::vector<double>(std::size_t(heads * e.width), 0.0)};
  auto const worst = report_of_heads<window_certificate>(who, tasks_of(e, in), [&](index_t b, index_t h) {
    window_certificate certificate;
    sight const seen = sees(b, h);
    with_head<T, Arch>(op, seen, in, e, b, h, who, [&](auto& head) {
      certificate = head.forward();
      head.backward(by, d, by_row, by_sink);
    });
    return certificate;
  });
  write_shared(e, by_row.tau, e.queries, 1, d.tau);
  write_shared(e, by_row.scale, e.queries, 1, d.scale);
  write_shared(e, by_sink.key, 1, 1, d.sink_k);
  write_shared(e, by_sink.value, 1, e.width, d.sink_v);
  return worst;
}

}  // namespace attune::line::detail
