// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   forward_kernel k(p);   k.sees = ...;   forward_result r = run<float>(k);
//
// A tiled attention kernel, with a hook at every place where a defect of the held-out grammar goes. A hook that is not
// set does what a correct kernel does.
#pragma once

#include "problem.hpp"

namespace attune::test::held {

struct forward_result {
  array out, lse;
};

struct forward_kernel {
  problem const* p;
  array q, k, v;                                          ///< as the kernel reads them; k and v by heads of queries
  int tile = 32, query_tile = 32;                         ///< keys and queries of a tile
  std::vector<int> splits;                                ///< first key of each split after the first
  std::function<bool(pair_at)> sees;                      ///< visibility
  std::function<double(pair_at, double)> logit;           ///< of a dot product
  std::function<double(pair_at, double)> power;           ///< e^x, x = logit - maximum
  std::function<double(pair_at, double)> in_sum, in_out;  ///< a weight as it is added to the sum, and multiplied by v
  std::function<double(row_at, int, double)> shrink_sum, shrink_out;  ///< (row, tile, e^(old - new maximum))
  std::function<double(row_at, int)> times_sum, times_out;            ///< how often a tile counts
  std::function<double(double)> round_sum, round_out;                 ///< after each tile
  std::function<double(double)> round_out_each;                       ///< after each key
  std::function<double(row_at, int, double)> merge;  ///< (row, split, lse of the split - largest) -> weight
  std::function<double(row_at, double)> sink;        ///< (row, maximum) -> logit of the sink
  bool sink_in_splits = false;
  std::function<double(row_at, double)> divisor;      ///< of the sum
  std::function<double(row_at, double, double)> lse;  ///< (row, maximum, sum)
  std::function<void(array&, array&)> after;          ///< changes out and lse before they are stored
  std::function<double(double)> store;                ///< rounding of out
  bool plain_weights = false;                         ///< weights are not rounded to the format of out

  explicit forward_kernel(problem const& of) : p(&of), q(of.q), k(of.expanded(of.k)), v(of.expanded(of.v)) {
    sees = [x = p](pair_at a) { return x->sees(a); };
    logit = [x = p](pair_at a, double dot) { return x->logit(a, dot); };
  }
  /// Adds to `after`.
  void finally(std::function<void(array&, array&)> f) {
    after = [g = after, f](array& out, array& of_rows) {
      if (g) g(out, of_rows);
      f(out, of_rows);
    };
  }
  /// Visibility becomes f(pair, old visibility).
  void see(std::function<bool(pair_at, bool)> f) {
    sees = [g = sees, f](pair_at a) { return f(a, g(a)); };
  }
  /// The logit becomes f(pair, dot, old logit).
  void score(std::function<double(pair_at, double, double)> f) {
    logit = [g = logit, f](pair_at a, double dot) { return f(a, dot, g(a, dot)); };
  }
  int tiles() const { return (p->keys + tile - 1) / tile; }
};

namespace detail {

/// A part of a row: the keys of one split.
template <class T>
struct partial_row {
  T top = T(nothing), sum = 0;
  std::vector<T> out;
};

template <class T>
partial_row<T> part_of(forward_kernel const& k, row_at r, int from, int until) {
  problem const& p = *k.p;
  partial_row<T> to;
  to.out.assign(std::size_t(p.value_width), 0);
  std::vector<T> s;
  for (int first = from; first < until; first += k.tile) {
    int const last = std::min(first + k.tile, until), number = first / k.tile;
    T top = T(nothing);
    s.assign(std::size_t(last - first), T(nothing));
    for (int j = first; j < last; ++j) {
      pair_at const a{r.b, r.h, r.i, j};
      if (!k.sees(a)) continue;
      T dot = 0;
      double const *x = &k.q.x[k.q.place(r.b, r.h, r.i, 0)], *y = &k.k.x[k.k.place(r.b, r.h, j, 0)];
      for (int c = 0; c < p.width; ++c) dot += T(x[c]) * T(y[c]);
      top = std::max(top, s[std::size_t(j - first)] = T(k.logit(a, double(dot))));
    }
    top = std::max(top, to.top);
    if (top == T(nothing)) continue;
    T const alpha = to.top == T(nothing) ? T(0) : T(std::exp(to.top - top));
    to.sum *= k.shrink_sum ? T(k.shrink_sum(r, number, double(alpha))) : alpha;
    T const of_out = k.shrink_out ? T(k.shrink_out(r, number, double(alpha))) : alpha;
    for (T& x : to.out) x *= of_out;
    to.top = top;
    T const in_sum = k.times_sum ? T(k.times_sum(r, number)) : T(1);
    T const in_out = k.times_out ? T(k.times_out(r, number)) : T(1);
    for (int j = first; j < last; ++j) {
      T const x = s[std::size_t(j - first)];
      if (x == T(nothing)) continue;
      pair_at const a{r.b, r.h, r.i, j};
      T w = k.power ? T(k.power(a, double(x - top))) : T(std::exp(x - top));
      to.sum += in_sum * (k.in_sum ? T(k.in_sum(a, double(w))) : w);
      if (k.in_out) w = T(k.in_out(a, double(w)));
      if (p.stored != storage::fp32 && !k.plain_weights) w = T(rounded_to(p.stored, double(w)));
      w *= in_out;
      double const* y = &k.v.x[k.v.place(r.b, r.h, j, 0)];
      for (int c = 0; c < p.value_width; ++c) {
        T& o = to.out[std::size_t(c)];
        o += w * T(y[c]);
        if (k.round_out_each) o = T(k.round_out_each(double(o)));
      }
    }
    if (k.round_sum) to.sum = T(k.round_sum(double(to.sum)));
    if (k.round_out)
      for (T& x : to.out) x = T(k.round_out(double(x)));
  }
  return to;
}

}  // namespace detail

/// What the kernel computes, in T. Not yet stored.
template <class T>
forward_result run(forward_kernel const& k) {
  problem const& p = *k.p;
  forward_result to{array(p.batch, p.heads, p.queries, p.value_width), array(p.batch, p.heads, p.queries, 1)};
  bool const sink = p.has("sink");
  std::vector<int> starts{0};
  starts.insert(starts.end(), k.splits.begin(), k.splits.end());
  starts.push_back(p.keys);
  for (int b = 0; b < p.batch; ++b)
    for (int h = 0; h < p.heads; ++h)
      for (int i = 0; i < p.queries; ++i) {
        row_at const r{b, h, i};
        std::vector<detail::partial_row<T>> parts;
        std::vector<T> lse;
        T largest = T(nothing), top = T(nothing);
        auto const with_sink = [&](detail::partial_row<T>& x) {
          double const t = k.sink ? k.sink(r, double(x.top)) : double(p.sink[std::size_t(h)]);
          if (x.top == T(nothing)) x.top = T(t), x.sum = 0;
          x.sum += T(std::exp(T(t) - x.top));
        };
        for (std::size_t n = 0; n + 1 < starts.size(); ++n) {
          parts.push_back(detail::part_of<T>(k, r, starts[n], starts[n + 1]));
          if (sink && (k.sink_in_splits || starts.size() == 2)) with_sink(parts.back());
          auto const& x = parts.back();
          lse.push_back(x.top == T(nothing) ? T(nothing) : x.top + T(std::log(x.sum)));
          largest = std::max(largest, lse.back());
          top = std::max(top, x.top);
        }
        detail::partial_row<T> all = parts[0];
        if (parts.size() > 1) {
          all = {largest, 0, std::vector<T>(std::size_t(p.value_width), 0)};
          for (std::size_t n = 0; n < parts.size(); ++n) {
            if (lse[n] == T(nothing)) continue;
            T const off = lse[n] - largest, w = k.merge ? T(k.merge(r, int(n), double(off))) : T(std::exp(off));
            all.sum += w;
            for (int c = 0; c < p.value_width; ++c)
              all.out[std::size_t(c)] += w * parts[n].out[std::size_t(c)] / parts[n].sum;
          }
          if (sink && !k.sink_in_splits) with_sink(all);
        }
        T const by = k.divisor ? T(k.divisor(r, double(all.sum))) : all.sum;
        for (int c = 0; c < p.value_width; ++c)
          to.out(b, h, i, c) = all.top == T(nothing) ? 0 : double(T(all.out[std::size_t(c)] / by));
        to.lse(b, h, i, 0) = all.top == T(nothing) ? nothing
                             : k.lse               ? k.lse(r, double(all.top), double(all.sum))
                                                   : double(T(all.top + T(std::log(all.sum))));
      }
  if (k.after) k.after(to.out, to.lse);
  return to;
}

/// Rounded as the kernel stores it.
inline forward_result stored(forward_kernel const& k, forward_result r) {
  for (double& x : r.out.x) x = rounded_to(k.p->stored, k.store ? k.store(x) : x);
  r.lse.round(storage::fp32);
  return r;
}

}  // namespace attune::test::held
