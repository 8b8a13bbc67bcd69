// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   out_i = sum_j max(q_i - k_j, 0) v_j,   divided by K or by sum_j max(q_i - k_j, 0)        in O(n log n)
//
// Left of a query the kernel is a polynomial. With M = sum (p - k) v and S = sum v over the keys before p, the sum at q
// > p is M + (q - p) S. (This makes the method exact, not a finite support: max(q - k, 0) is unbounded to the left.)
// The moments are relative to the current position of the scan, never to 0: q S - sum k v would cancel.
#pragma once

#include <vector>

#include <attune/line/call/workers.hpp>
#include <attune/line/order/near_pairs.hpp>
#include <attune/line/order/order.hpp>
#include <attune/line/order/rows.hpp>
#include <attune/line/sliced_relu/cells.hpp>
#include <attune/line/sliced_relu/rows.hpp>

namespace attune::line::detail {

/// Moments of order 0 and 1 of the rows added so far, relative to the position of the last row.
template <class W>
class moment_scan {
 public:
  explicit moment_scan(index_t width) : moments_(2, width) {}
  void restart() { moments_.clear(); }
  /// The sum of the rows.
  W const* sum() const { return moments_[0]; }
  /// Adds a row at x, at or beyond all others.
  void accumulate(W const& x, W const* row) {
    add(moments_[1], moments_[0], math::abs(W(x - at_)), moments_.step());
    add(moments_[0], row, W(1), moments_.step());
    at_ = x;
  }
  /// to = to + sum |x - x_j| row_j, for x at or beyond all of them
  void add_distances(W* to, W const& x) const {
    add(to, moments_[1], W(1), moments_.step());
    add(to, moments_[0], math::abs(W(x - at_)), moments_.step());
  }

 private:
  rows<W> moments_;
  W at_ = W(0);
};

template <class T, class Arch>
class sliced_relu_head {
  using W = wide<T>;
  using near_type = near_pairs_of<T, Arch, relu_scores>;
  static constexpr bool fused = !std::is_same_v<near_type, no_near_pairs>;

 public:
  sliced_relu_head(divisor divided_by, sight const& sees, arrays<T> const& in, extents const& e, index_t b, index_t h)
      : e_(e), in_(in), b_(b), h_(h), divided_by_(divided_by), sees_(sees), on_(in, e, b, h), scan_(e.width + 1),
        sums_(e.queries, e.width + 1), buffer_(1, e.width + 1), value_(in, e, b, h), near_(in, e, b, h, 1),
        seen_(sees.intervals()) {}

  /// A scan per rectangle, or cells for a staircase.
  void forward() {
    relu_cells<T, Arch> cells(in_, e_, b_, h_, on_);
    for_each_visible(
        sees_, on_, near_type::most_keys,
        [&](std::span<index_t const> queries, std::span<index_t const> keys) {
          scan_.restart();
          ascend(
              queries, on_.q, keys, on_.k, before<W>,
              [&](index_t j) { scan_.accumulate(on_.k[std::size_t(j)], value_(j)); },
              [&](index_t i) { scan_.add_distances(sums_[i], on_.q[std::size_t(i)]); });
        },
        [&](index_t i, index_t first, index_t last) {
          if constexpr (fused) return near_.add(i, first, last);
          for (index_t j = first; j < last; ++j)
            if (W const e = on_.q[std::size_t(i)] - on_.k[std::size_t(j)]; e > W(0))
              add(sums_[i], value_.kept(j), e, sums_.step());
        },
        [&](staircase const& stairs) {
          return cells.walk(stairs, [&](index_t i, double const* row, double mass) {
            for (index_t f = 0; f < e_.width; ++f) sums_[i][f] = sums_[i][f] + row[f];
            sums_[i][e_.width] = sums_[i][e_.width] + mass;
          });
        });
    if constexpr (fused)
      near_.forward(
          [&](index_t i, W const&, W const* row) { attune::line::detail::add(sums_[i], row, W(1), sums_.step()); });
  }
  /// After forward().
  void write(results<T> const& to) {
    store_head(to, b_, h_, e_.queries, sums_, [&](index_t i) { return finish(i).lse; });
  }

  /// After forward(): dw_ij = f_i (<do_i, v_j> - R_i), the product of the rows f (do, -R) and (v, 1). R = 0 unless rows
  /// are divided by their sum.
  void backward(result_cotangents<T> const& by, gradient_views<T> const& d) {
    index_t const step = sums_.step();
    std::vector<W> lse;
    for (index_t i = 0; i < e_.queries; ++i) {
      auto const done = finish(i);
      factor_.push_back(done.value_factor);
      lse.push_back(done.lse);
    }
    rows<W>& pulls = sums_;
    for (index_t i = 0; i < e_.queries; ++i) {
      load(buffer_[0], by.out, b_, h_, i, W(0));
      pulls[i][e_.width] = W(0);
      W const f = factor_[std::size_t(i)];
      W const r = divided_by_ == divisor::sum
                      ? W(dot(buffer_[0], pulls[i], step) - (by.lse.absent() ? W(0) : W(by.lse(b_, h_, i, 0))))
                      : W(0);
      mix(pulls[i], W(0), buffer_[0], f, step);
      pulls[i][e_.width] = -(f * r);
    }
    std::vector<W> dq(std::size_t(e_.queries), W(0)), dk(std::size_t(e_.keys), W(0));
    rows<W> dv(e_.keys, e_.width + 1);
    if constexpr (fused) near_.clear();  // forward() may have assigned some of these pairs differently
    for_each_visible(
        sees_, on_, near_type::most_keys,
        [&](std::span<index_t const> queries, std::span<index_t const> keys) {
          scan_.restart();
          ascend(
              queries, on_.q, keys, on_.k, before<W>,
              [&](index_t j) { scan_.accumulate(on_.k[std::size_t(j)], value_(j)); },
              [&](index_t i) { dq[std::size_t(i)] = dq[std::size_t(i)] + dot(pulls[i], scan_.sum(), step); });
          scan_.restart();
          descend(
              keys, on_.k, queries, on_.q, [&](index_t i) { scan_.accumulate(on_.q[std::size_t(i)], pulls[i]); },
              [&](index_t j) {
                dk[std::size_t(j)] = dk[std::size_t(j)] - dot(value_(j), scan_.sum(), step);
                scan_.add_distances(dv[j], on_.k[std::size_t(j)]);
              });
        },
        [&](index_t i, index_t first, index_t last) {
          if constexpr (fused) return near_.add(i, first, last);
          for (index_t j = first; j < last; ++j) {
            W const e = on_.q[std::size_t(i)] - on_.k[std::size_t(j)];
            if (!(e > W(0))) continue;
            W const pull = dot(pulls[i], value_.kept(j), step);
            dq[std::size_t(i)] = dq[std::size_t(i)] + pull;
            dk[std::size_t(j)] = dk[std::size_t(j)] - pull;
            add(dv[j], pulls[i], e, step);
          }
        });
    if constexpr (fused) near_.backward(pulls, lse, W(1), dq, dk, dv);
    add_to_gradients(e_, b_, h_, dq, dk, dv, W(1), d);
  }

 private:
  /// Divides row i.
  finished_row<W> finish(index_t i) {
    W* const row = sums_[i];
    auto const done = finish_relu(divided_by_, row[e_.width], W(double(seen_[std::size_t(i)].size())));
    for (index_t d = 0; d < e_.width; ++d) row[d] = row[d] * done.value_factor;
    return done;
  }

  extents const& e_;
  arrays<T> const& in_;
  index_t b_, h_;
  divisor divided_by_;
  sight const& sees_;
  scalars<W> on_;
  moment_scan<W> scan_;
  rows<W> sums_, buffer_;
  value_rows<T, W> value_;
  near_type near_;
  std::vector<key_interval> const& seen_;
  std::vector<W> factor_;
};

/// Computes a head whose visible pairs form one staircase, directly into the outputs. Returns false if that does not
/// apply.
template <class T, class Arch>
bool forward_by_cells(divisor divided_by, sight const& sees, arrays<T> const& in, extents const& e, index_t b,
                      index_t h, results<T> const& to) {
  std::vector<index_t> const counts = lone_staircase(sees, shortest_block);
  if (counts.empty()) return false;
  scalars<wide<T>> const on(in, e, b, h);
  relu_cells<T, Arch> cells(in, e, b, h, on);
  return cells.walk({counts, {0, false}, {0, false}}, [&](index_t i, double* row, double mass) {
    store_row(to, b, h, i, row, finish_relu(divided_by, mass, double(counts[std::size_t(i)])));
  });
}

/// The arguments are checked; sees(b, h) is the sight of a head.
template <class T, class Arch, class Sees>
void run_sliced_relu(divisor divided_by, Sees const& sees, arrays<T> const& in, extents const& e, results<T> const& to,
                     workers const& who) {
  for_each_head(who, e, [&](index_t b, index_t h) {
    sight const seen = sees(b, h);
    if (forward_by_cells<T, Arch>(divided_by, seen, in, e, b, h, to)) return;
    sliced_relu_head<T, Arch> head(divided_by, seen, in, e, b, h);
    head.forward();
    head.write(to);
  });
}
template <class T, class Arch, class Sees>
void run_sliced_relu_vjp(divisor divided_by, Sees const& sees, arrays<T> const& in, extents const& e,
                         result_cotangents<T> const& by, gradient_views<T> const& d, workers const& who) {
  clear(d.sort_k);
  clear(d.v);
  for_each_head(who, e, [&](index_t b, index_t h) {
    sight const seen = sees(b, h);
    sliced_relu_head<T, Arch> head(divided_by, seen, in, e, b, h);
    head.forward();
    head.backward(by, d);
  });
}

}  // namespace attune::line::detail
