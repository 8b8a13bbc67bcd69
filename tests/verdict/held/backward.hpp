// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   backward_kernel k(p);   k.delta = ...;   gradients_of_kernel g = run<float>(k);
//
// The backward pass of such a kernel: P = e^(s - lse), dS = P (dP - delta), with hooks.
#pragma once

#include "forward.hpp"

namespace attune::test::held {

struct backward_result {
  array dq, dk, dv, dbias;
  template <class F>
  void each(F const& f) {
    f("dq", dq), f("dk", dk), f("dv", dv);
    if (!dbias.x.empty()) f("dbias", dbias);
  }
};

struct backward_kernel {
  using of_pair = std::function<double(pair_at, double)>;
  using of_row = std::function<double(row_at, double)>;
  problem const* p;
  array q, k, v, dout;                    ///< as the kernel reads them; k and v by heads of queries
  array k_for_dq, q_for_dk, dout_for_dv;  ///< the same, as the last products read them
  int tile = 32, query_tile = 32;
  std::function<bool(pair_at)> sees;
  of_pair logit, slope;                                     ///< recomputed logit, and its derivative, of a dot product
  of_row lse, delta;                                        ///< of the row
  of_pair dp, ds, weight;                                   ///< dP, dS, and P
  of_pair in_dq, in_dk, in_dv, in_dbias;                    ///< dS or P, as the last products read them
  double scale_q = 1, scale_k = 1;                          ///< further factors
  std::function<double(double)> round_q, round_k, round_v;  ///< the sums, after each tile
  std::function<double(int, double)> of_head_k, of_head_v;  ///< a head's part in dk and dv of its group
  std::function<int(int)> group_of;                         ///< the head of keys that gets the gradient of a head
  std::function<void(backward_result&)> after;
  bool plain = false;  ///< P and dS are not rounded to the format of the gradients

  explicit backward_kernel(problem const& of)
      : p(&of), q(of.q), k(of.expanded(of.k)), v(of.expanded(of.v)), dout(of.dout) {
    k_for_dq = k, q_for_dk = q, dout_for_dv = dout;
    sees = [x = p](pair_at a) { return x->sees(a); };
    logit = [x = p](pair_at a, double dot) { return x->logit(a, dot); };
    slope = [x = p](pair_at a, double dot) { return x->slope_of_logit(a, dot); };
  }
  void see(std::function<bool(pair_at, bool)> f) {
    sees = [g = sees, f](pair_at a) { return f(a, g(a)); };
  }
  void finally(std::function<void(backward_result&)> f) {
    after = [g = after, f](backward_result& x) {
      if (g) g(x);
      f(x);
    };
  }
};

/// What the kernel computes, in T. Not yet stored.
template <class T>
backward_result run(backward_kernel const& k) {
  problem const& p = *k.p;
  forward_kernel right(p);
  right.plain_weights = k.plain;
  forward_result const there = run<T>(right);
  array dq(p.batch, p.heads, p.queries, p.width), dk(p.batch, p.heads, p.keys, p.width),
      dv(p.batch, p.heads, p.keys, p.value_width), dbias;
  if (p.has("bias")) dbias = array(1, p.heads, p.queries, p.keys);
  auto const rounded = [&](double x) { return p.stored == storage::fp32 || k.plain ? x : rounded_to(p.stored, x); };
  auto const add = [](double* to, double w, double const* x, int n) {
    for (int c = 0; c < n; ++c) to[c] = double(T(to[c]) + T(w) * T(x[c]));
  };
  auto const with = [](auto const& f, auto const& at, double x) { return f ? f(at, x) : x; };
  std::vector<double> deltas(std::size_t(p.queries)), lses(deltas);
  for (int b = 0; b < p.batch; ++b)
    for (int h = 0; h < p.heads; ++h) {
      for (int i = 0; i < p.queries; ++i) {
        T delta = 0;
        for (int c = 0; c < p.value_width; ++c) delta += T(there.out(b, h, i, c)) * T(k.dout(b, h, i, c));
        deltas[std::size_t(i)] = with(k.delta, row_at{b, h, i}, double(delta));
        lses[std::size_t(i)] = with(k.lse, row_at{b, h, i}, there.lse(b, h, i, 0));
      }
      for (int first = 0; first < p.keys; first += k.tile) {
        int const last = std::min(first + k.tile, p.keys);
        for (int start = 0; start < p.queries; start += k.query_tile) {
          int const end = std::min(start + k.query_tile, p.queries);
          for (int i = start; i < end; ++i)
            for (int j = first; j < last; ++j) {
              pair_at const a{b, h, i, j};
              if (lses[std::size_t(i)] == nothing || !k.sees(a)) continue;
              T dot = 0, dp = 0;
              for (int c = 0; c < p.width; ++c) dot += T(k.q(b, h, i, c)) * T(k.k(b, h, j, c));
              for (int c = 0; c < p.value_width; ++c) dp += T(k.dout(b, h, i, c)) * T(k.v(b, h, j, c));
              double const w = with(k.weight, a, double(std::exp(T(k.logit(a, double(dot)) - lses[std::size_t(i)]))));
              double ds = double(T(w) * (T(with(k.dp, a, double(dp))) - T(deltas[std::size_t(i)])));
              ds = with(k.ds, a, ds * k.slope(a, double(dot)));
              if (!dbias.x.empty()) dbias(0, h, i, j) += with(k.in_dbias, a, ds);
              ds = rounded(ds);
              add(&dq.x[dq.place(b, h, i, 0)], with(k.in_dq, a, ds) * p.scale * k.scale_q,
                  &k.k_for_dq.x[k.k.place(b, h, j, 0)], p.width);
              add(&dk.x[dk.place(b, h, j, 0)], with(k.in_dk, a, ds) * p.scale * k.scale_k,
                  &k.q_for_dk.x[k.q.place(b, h, i, 0)], p.width);
              add(&dv.x[dv.place(b, h, j, 0)], rounded(with(k.in_dv, a, w)), &k.dout_for_dv.x[k.dout.place(b, h, i, 0)],
                  p.value_width);
            }
          auto const round = [&](auto const& f, array& x, int from, int until) {
            if (!f) return;
            for (int n = from; n < until; ++n)
              for (int c = 0; c < x.width; ++c) x(b, h, n, c) = f(x(b, h, n, c));
          };
          round(k.round_q, dq, start, end), round(k.round_k, dk, first, last), round(k.round_v, dv, first, last);
        }
      }
    }
  backward_result to{dq, array(p.batch, p.key_heads, p.keys, p.width),
                     array(p.batch, p.key_heads, p.keys, p.value_width), dbias};
  auto const gather = [&](array const& x, array& sum, auto const& part) {
    for (int b = 0; b < p.batch; ++b)
      for (int h = 0; h < p.heads; ++h)
        for (int j = 0; j < p.keys; ++j)
          for (int c = 0; c < x.width; ++c)
            sum(b, k.group_of ? k.group_of(h) : h / p.group(), j, c) += part ? part(h, x(b, h, j, c)) : x(b, h, j, c);
  };
  gather(dk, to.dk, k.of_head_k), gather(dv, to.dv, k.of_head_v);
  if (k.after) k.after(to);
  return to;
}

/// Rounded as the kernel stores it.
inline backward_result stored(backward_kernel const& k, backward_result r) {
  r.each([&](char const*, array& x) { x.round(k.p->stored); });
  return r;
}

}  // namespace attune::test::held
