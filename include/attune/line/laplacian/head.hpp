// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   out_i = sum_j w_ij v_j,   w_ij = e^(-|q_i - k_j| / tau) / z_i        in O(n log n)
//
// On each side of a query the kernel is a product, e^(-(q - k)/tau) = e^(-(q - p)/tau) e^(-(p - k)/tau). One scan along
// the sorted keys from the left and one from the right compute all sums. Every factor in them is at most 1.
#pragma once

#include <vector>

#include <attune/line/call/workers.hpp>
#include <attune/line/laplacian/anchor.hpp>
#include <attune/line/laplacian/cells.hpp>
#include <attune/line/order/mass_rows.hpp>
#include <attune/line/order/near_pairs.hpp>
#include <attune/line/order/order.hpp>
#include <attune/operators/row_state.hpp>
#include <attune/policies/kernel/scalar.hpp>
#include <attune/policies/normalizer/softmax.hpp>

namespace attune::line::detail {

/// Sums of masses and values relative to the mass of one key, the anchor. They are valid for every position beyond the
/// last key added.
template <class W>
class laplacian_scan {
 public:
  laplacian_scan(W const& tau, index_t step) : kernel_{tau}, sums_(1, step), step_(sums_.step()) {}
  /// The logit of a key at distance e.
  W score(W const& e) const { return kernel_.score(e, key<W>{W(0)}); }

  void restart() {
    empty_ = true;
    anchor_ = {};
    sums_.clear();
  }
  bool empty() const { return empty_; }
  W const* sums() const { return sums_[0]; }
  /// The logit that the masses are relative to, at position x.
  W reference(W const& x) const { return anchor_.seen_from(kernel_, x); }
  /// Adds one source at x, beyond all others, with the given logit.
  void accumulate(W const& x, W const& logit, W const* row) {
    auto const both = join(kernel_, anchor_, {x, logit});
    if (both.second_factor == W(1))
      mix(sums_[0], both.first_factor, row, W(1), step_);
    else
      add(sums_[0], row, both.second_factor, step_);
    anchor_ = both.from;
    empty_ = false;
  }

 private:
  kernel::scalar_laplacian::bound<W> kernel_;
  rows<W> sums_;
  index_t step_;
  anchor<W> anchor_;
  bool empty_ = true;
};

/// One head: masses, value sums, outputs and gradients for every query.
template <class T, class Arch>
class laplacian_head {
  using W = wide<T>;
  using near_type = near_pairs_of<T, Arch, laplacian_scores>;
  static constexpr bool fused = !std::is_same_v<near_type, no_near_pairs>;

 public:
  laplacian_head(parameter const& tau, sight const& sees, arrays<T> const& in, extents const& e, index_t b, index_t h)
      : e_(e), in_(in), b_(b), h_(h), tau_(tau.template value<W>(b, h, 0)), sees_(sees), on_(in, e, b, h),
        scan_(tau_, e.width + 1), sums_(e.queries, e.width), buffer_(1, e.width + 1), value_(in, e, b, h),
        near_(in, e, b, h, tau_), lse_(std::size_t(e.queries)) {}

  /// Two scans per rectangle, or cells for a staircase.
  void forward() {
    laplacian_cells<T, Arch> cells(in_, e_, b_, h_, on_, tau_);
    for_each_visible(
        sees_, on_, near_type::most_keys,
        [&](std::span<index_t const> queries, std::span<index_t const> keys) {
          auto const accumulate = [&](index_t j) { scan_.accumulate(on_.k[std::size_t(j)], W(0), value_(j)); };
          auto const join_all = [&](index_t i) {
            if (!scan_.empty()) sums_.join(i, scan_.reference(on_.q[std::size_t(i)]), scan_.sums());
          };
          scan_.restart();
          ascend(queries, on_.q, keys, on_.k, not_behind<W>, accumulate, join_all);
          scan_.restart();
          descend(queries, on_.q, keys, on_.k, accumulate, join_all);
        },
        [&](index_t i, index_t first, index_t last) {
          if constexpr (fused) return near_.add(i, first, last);
          for (index_t j = first; j < last; ++j)
            sums_.join(i, scan_.score(on_.q[std::size_t(i)] - on_.k[std::size_t(j)]), value_.kept(j));
        },
        [&](staircase const& stairs) {
          return cells.walk(stairs, [&](index_t i, auto const* row, auto mass) { sums_.add_from_zero(i, row, mass); });
        });
    if constexpr (fused)
      near_.forward([&](index_t i, W const& reference, W const* row) { sums_.join(i, reference, row); });
  }
  /// After forward().
  void write(results<T> const& to) {
    store_head(to, b_, h_, e_.queries, sums_, [&](index_t i) { return sums_.finish(i); });
  }

  /// After forward(): da_ij = w_ij (<do_i, v_j> - R_i), R_i = <do_i, out_i> - dlse_i, as products of rows (do, -R) and
  /// (v, 1). For gradients of queries the sources are keys with logit 0. For gradients of keys the sources are queries
  /// with logit -lse. Returns the gradient by tau.
  W backward(result_cotangents<T> const& by, gradient_views<T> const& d) {
    index_t const step = sums_.step();
    for (index_t i = 0; i < e_.queries; ++i) lse_[std::size_t(i)] = sums_.finish(i);
    make_pulls(e_, b_, h_, by, lse_, sums_.sums());
    rows<W> const& pulls = sums_.sums();
    std::vector<W> dq(std::size_t(e_.queries), W(0)), dk(std::size_t(e_.keys), W(0));
    rows<W> dv(e_.keys, e_.width + 1);
    normalizer::softmax::bound<W> const softmax{};
    if constexpr (fused) near_.clear();  // forward() may have assigned some of these pairs differently
    auto const alive = [&](index_t i) { return !(lse_[std::size_t(i)] == -math::infinity<W>()); };
    for_each_visible(
        sees_, on_, near_type::most_keys,
        [&](std::span<index_t const> queries, std::span<index_t const> keys) {
          auto const accumulate_key = [&](index_t j) { scan_.accumulate(on_.k[std::size_t(j)], W(0), value_(j)); };
          auto const to_query = [&](W const& sign) {
            return [&, sign](index_t i) {
              if (scan_.empty() || !alive(i)) return;
              W const mass = softmax.earned(scan_.reference(on_.q[std::size_t(i)]), lse_[std::size_t(i)]);
              dq[std::size_t(i)] = dq[std::size_t(i)] + sign * mass * dot(pulls[i], scan_.sums(), step);
            };
          };
          scan_.restart();  // equal scalars give no gradient: strictly before, strictly behind
          ascend(queries, on_.q, keys, on_.k, before<W>, accumulate_key, to_query(W(-1)));
          scan_.restart();
          descend(queries, on_.q, keys, on_.k, accumulate_key, to_query(W(1)));

          auto const accumulate_query = [&](index_t i) {
            if (alive(i)) scan_.accumulate(on_.q[std::size_t(i)], -lse_[std::size_t(i)], pulls[i]);
          };
          auto const to_key = [&](W const& sign) {
            return [&, sign](index_t j) {
              if (scan_.empty()) return;
              W const mass = math::exp(scan_.reference(on_.k[std::size_t(j)]));
              dk[std::size_t(j)] = dk[std::size_t(j)] + sign * mass * dot(value_(j), scan_.sums(), step);
              add(dv[j], scan_.sums(), mass, step);
            };
          };
          scan_.restart();
          ascend(keys, on_.k, queries, on_.q, before<W>, accumulate_query, to_key(W(-1)));
          scan_.restart();
          descend(keys, on_.k, queries, on_.q, accumulate_query, to_key(W(1)));
          at_equal_scalars(queries, keys, pulls, dv);
        },
        [&](index_t i, index_t first, index_t last) {
          if constexpr (fused) return near_.add(i, first, last);
          if (!alive(i)) return;
          for (index_t j = first; j < last; ++j) {
            W const e = on_.q[std::size_t(i)] - on_.k[std::size_t(j)];
            W const w = softmax.earned(scan_.score(e), lse_[std::size_t(i)]);
            W const pull = w * dot(pulls[i], value_.kept(j), step);
            add(dv[j], pulls[i], w, step);
            if (e == W(0)) continue;
            dq[std::size_t(i)] = e < W(0) ? dq[std::size_t(i)] + pull : dq[std::size_t(i)] - pull;
            dk[std::size_t(j)] = e < W(0) ? dk[std::size_t(j)] - pull : dk[std::size_t(j)] + pull;
          }
        });
    if constexpr (fused) near_.backward(pulls, lse_, W(1) / tau_, dq, dk, dv);
    // A score does not change if q, k and tau are multiplied by one factor, or if q and k are shifted by one amount.
    // So the gradient by tau follows from the gradients by q and k, for any origin:
    //   tau ds/dtau = -(q - origin) ds/dq - (k - origin) ds/dk
    W by_tau(0);
    W const origin = e_.keys > 0 ? on_.k[std::size_t(e_.keys / 2)] : W(0);
    for (index_t i = 0; i < e_.queries; ++i) by_tau = by_tau - (on_.q[std::size_t(i)] - origin) * dq[std::size_t(i)];
    for (index_t j = 0; j < e_.keys; ++j) by_tau = by_tau - (on_.k[std::size_t(j)] - origin) * dk[std::size_t(j)];
    add_to_gradients(e_, b_, h_, dq, dk, dv, W(W(1) / tau_), d);
    return by_tau / (tau_ * tau_);
  }

 private:
  /// The gradients from queries to the values of keys at the same place. Summed once per place, because all keys may be
  /// equal.
  void at_equal_scalars(std::span<index_t const> queries, std::span<index_t const> keys, rows<W> const& pulls,
                        rows<W>& dv) {
    index_t const step = pulls.step();
    normalizer::softmax::bound<W> const softmax{};
    std::size_t i = 0, j = 0;
    while (i < queries.size() && j < keys.size()) {
      W const q = on_.q[std::size_t(queries[i])], k = on_.k[std::size_t(keys[j])];
      if (q < k) {
        ++i;
      } else if (k < q) {
        ++j;
      } else {
        W* const sum = buffer_[0];
        std::fill(sum, sum + step, W(0));
        for (; i < queries.size() && on_.q[std::size_t(queries[i])] == k; ++i)
          if (W const lse = lse_[std::size_t(queries[i])]; !(lse == -math::infinity<W>()))
            add(sum, pulls[queries[i]], softmax.earned(W(0), lse), step);
        for (; j < keys.size() && on_.k[std::size_t(keys[j])] == k; ++j) add(dv[keys[j]], sum, W(1), step);
      }
    }
  }
  extents const& e_;
  arrays<T> const& in_;
  index_t b_, h_;
  W tau_;
  sight const& sees_;
  scalars<W> on_;
  laplacian_scan<W> scan_;
  mass_rows<W> sums_;
  rows<W> buffer_;
  value_rows<T, W> value_;
  near_type near_;
  std::vector<W> lse_;
};

/// Computes a head whose visible pairs form one staircase, directly into the outputs. Returns false if that does not
/// apply.
template <class T, class Arch>
bool forward_by_cells(parameter const& tau, sight const& sees, arrays<T> const& in, extents const& e, index_t b,
                      index_t h, results<T> const& to) {
  std::vector<index_t> const counts = lone_staircase(sees, shortest_block);
  if (counts.empty()) return false;
  scalars<wide<T>> const on(in, e, b, h);
  laplacian_cells<T, Arch> cells(in, e, b, h, on, tau.template value<wide<T>>(b, h, 0));
  return cells.walk({counts, {0, false}, {0, false}}, [&](index_t i, double* row, double mass) {
    auto const done = finish_masses<normalizer::softmax>(normalizer::softmax::bound<double>{}, 0.0, mass, 0.0, 1.0);
    store_row(to, b, h, i, row, done);
  });
}

/// The arguments are checked; sees(b, h) is the sight of a head.
template <class T, class Arch, class Sees>
void run_laplacian(parameter const& tau, Sees const& sees, arrays<T> const& in, extents const& e, results<T> const& to,
                   workers const& who) {
  for_each_head(who, e, [&](index_t b, index_t h) {
    sight const seen = sees(b, h);
    if (forward_by_cells<T, Arch>(tau, seen, in, e, b, h, to)) return;
    laplacian_head<T, Arch> head(tau, seen, in, e, b, h);
    head.forward();
    head.write(to);
  });
}
/// Returns the gradients by the bandwidth of each (batch, head).
template <class T, class Arch, class Sees>
std::vector<wide<T>> run_laplacian_vjp(parameter const& tau, Sees const& sees, arrays<T> const& in, extents const& e,
                                       result_cotangents<T> const& by, gradient_views<T> const& d, workers const& who) {
  clear(d.sort_k);
  clear(d.v);
  std::vector<wide<T>> by_tau(std::size_t(e.batch * e.heads));
  for_each_head(who, e, [&](index_t b, index_t h) {
    sight const seen = sees(b, h);
    laplacian_head<T, Arch> head(tau, seen, in, e, b, h);
    head.forward();
    by_tau[std::size_t(b * e.heads + h)] = head.backward(by, d);
  });
  return by_tau;
}

}  // namespace attune::line::detail
