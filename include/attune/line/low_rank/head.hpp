// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   out_i = <phi(q_i), sum_j phi(k_j) v_j> / <phi(q_i), sum_j phi(k_j)>        in O(n r (Dv + r))
//
// Attention by features of the kernel. These are approximations without a certificate. Nothing bounds their effect on a
// row, and a mass may even be negative. docs/reference/line.md lists their measured errors next to the certified forms,
// which cost no more.
#pragma once

#include <algorithm>
#include <vector>

#include <attune/line/call/workers.hpp>
#include <attune/line/certificates.hpp>
#include <attune/line/low_rank/maps.hpp>
#include <attune/line/order/mass_rows.hpp>
#include <attune/line/order/order.hpp>

namespace attune::line::detail {

inline auto map_of(fourier_features const& op, double tau, std::span<double const> k) {
  return fourier_map(op, tau, k);
}
inline auto map_of(nystroem const& op, double tau, std::span<double const> k) { return nystroem_map(op, tau, k); }
inline index_t rank_of(fourier_features const& op) { return op.features; }
inline index_t rank_of(nystroem const& op) { return op.landmarks; }
template <class Op>
concept feature_operator = requires(Op const& op) { rank_of(op); };

template <class T, class Op>
class low_rank_head {
  using W = double;

 public:
  low_rank_head(Op const& op, arrays<T> const& in, extents const& e, index_t b, index_t h)
      : e_(e), b_(b), h_(h), tau_(op.tau.template value<W>(b, h, 0)), on_(in, e, b, h),
        map_(map_of(op, tau_, ascending(on_.k))), value_(in, e, b, h), table_(map_.size(), e.width + 1),
        sums_(e.queries, e.width + 1), lse_(std::size_t(e.queries)) {}

  low_rank_report forward() {
    index_t const step = table_.step(), rank = map_.size();
    std::vector<W> phi(static_cast<std::size_t>(rank)), slope(phi);
    for (index_t j = 0; j < e_.keys; ++j) {
      map_(on_.k[std::size_t(j)], phi.data(), slope.data());
      W const* const row = value_(j);
      for (index_t m = 0; m < rank; ++m) add(table_[m], row, phi[std::size_t(m)], step);
    }
    low_rank_report report;
    for (index_t i = 0; i < e_.queries; ++i) {
      map_(on_.q[std::size_t(i)], phi.data(), slope.data());
      for (index_t m = 0; m < rank; ++m) add(sums_[i], table_[m], phi[std::size_t(m)], step);
      W const mass = sums_[i][e_.width];
      if (!(mass > 0)) {
        if (e_.keys > 0) ++report.rows_without_mass;
        std::fill(sums_[i], sums_[i] + step, W(0));
      }
      for (index_t d = 0; d < e_.width && mass > 0; ++d) sums_[i][d] /= mass;
      lse_[std::size_t(i)] = mass > 0 ? std::log(mass) : -math::infinity<W>();
    }
    return report;
  }
  void write(results<T> const& to) const {
    store_head(to, b_, h_, e_.queries, sums_, [&](index_t i) { return lse_[std::size_t(i)]; });
  }
  /// After forward(): the exact gradients of the computed approximation. Landmarks and frequencies are constants,
  /// except for the scale of frequencies in tau. Returns the gradient by tau if the features depend on x / sqrt(tau)
  /// only.
  W backward(result_cotangents<T> const& by, gradient_views<T> const& d) {
    make_pulls(e_, b_, h_, by, lse_, sums_);
    rows<W> const& pulls = sums_;
    index_t const step = table_.step(), rank = map_.size();
    std::vector<W> phi(static_cast<std::size_t>(rank)), slope(phi), dq(std::size_t(e_.queries), W(0)),
        dk(std::size_t(e_.keys), W(0));
    rows<W> pulled(rank, e_.width + 1), dv(e_.keys, e_.width + 1), one(1, e_.width + 1);
    for (index_t i = 0; i < e_.queries; ++i) {
      if (lse_[std::size_t(i)] == -math::infinity<W>()) continue;
      W const inverse = std::exp(-lse_[std::size_t(i)]);
      map_(on_.q[std::size_t(i)], phi.data(), slope.data());
      for (index_t m = 0; m < rank; ++m) {
        add(pulled[m], pulls[i], phi[std::size_t(m)] * inverse, step);
        dq[std::size_t(i)] += slope[std::size_t(m)] * inverse * dot(pulls[i], table_[m], step);
      }
    }
    for (index_t j = 0; j < e_.keys; ++j) {
      map_(on_.k[std::size_t(j)], phi.data(), slope.data());
      W const* const row = value_(j);
      for (index_t m = 0; m < rank; ++m) {
        add(dv[j], pulled[m], phi[std::size_t(m)], step);
        dk[std::size_t(j)] += slope[std::size_t(m)] * dot(row, pulled[m], step);
      }
    }
    W by_tau = 0;
    W const origin = e_.keys > 0 ? on_.k[std::size_t(e_.keys / 2)] : W(0);
    for (index_t i = 0; i < e_.queries; ++i) by_tau -= (on_.q[std::size_t(i)] - origin) * dq[std::size_t(i)];
    for (index_t j = 0; j < e_.keys; ++j) by_tau -= (on_.k[std::size_t(j)] - origin) * dk[std::size_t(j)];
    add_to_gradients(e_, b_, h_, dq, dk, dv, W(1), d);
    return by_tau / (2 * tau_);
  }

 private:
  static std::vector<W> ascending(std::vector<W> k) {
    std::sort(k.begin(), k.end());
    return k;
  }
  using map_type = decltype(map_of(std::declval<Op const&>(), 1.0, std::span<double const>()));

  extents const& e_;
  index_t b_, h_;
  W tau_;
  scalars<W> on_;
  map_type map_;
  value_rows<T, W> value_;
  rows<W> table_, sums_;
  std::vector<W> lse_;
};

/// The arguments are checked.
template <class T, class Op>
low_rank_report run_features(Op const& op, arrays<T> const& in, extents const& e, results<T> const& to,
                             workers const& who) {
  return report_of_heads<low_rank_report>(who, e, [&](index_t b, index_t h) {
    low_rank_head<T, Op> head(op, in, e, b, h);
    auto const report = head.forward();
    head.write(to);
    return report;
  });
}
/// The gradients of the computed approximation. by_tau: the gradients by the bandwidth of each (batch, head). Landmarks
/// are constants.
template <class T, class Op>
low_rank_report run_features_vjp(Op const& op, arrays<T> const& in, extents const& e, result_cotangents<T> const& by,
                                 gradient_views<T> const& d, std::vector<double>& by_tau, workers const& who) {
  clear(d.sort_k);
  clear(d.v);
  by_tau.assign(std::size_t(e.batch * e.heads), 0);
  return report_of_heads<low_rank_report>(who, e, [&](index_t b, index_t h) {
    low_rank_head<T, Op> head(op, in, e, b, h);
    auto const report = head.forward();
    by_tau[std::size_t(b * e.heads + h)] = head.backward(by, d);
    return report;
  });
}

}  // namespace attune::line::detail
