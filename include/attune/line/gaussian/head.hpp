// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   out_i = sum_j w_ij v_j,  w_ij = e^(-(q_i - k_j)^2 / tau) / z_i
//       in O(n log n) for a given tolerance, with a certificate
//
// No finite set of sums over keys serves every query, because the kernel is strictly positive definite. So this is an
// approximation, with a certificate of its accuracy: a 1-D fast Gauss transform. Keys in runs of about sqrt(tau) / 2
// are summed once to moments. Runs of queries collect the moments of the cells in their window. A run with few queries,
// or far from all keys, computes the keys in its window one by one.
#pragma once

#include <vector>

#include <attune/line/call/workers.hpp>
#include <attune/line/gaussian/plan.hpp>
#include <attune/line/gaussian/rectangle.hpp>
#include <attune/line/gaussian/waves.hpp>
#include <attune/line/order/mass_rows.hpp>
#include <attune/line/order/near_pairs.hpp>
#include <attune/line/order/order.hpp>
#include <attune/policies/kernel/scalar.hpp>

namespace attune::line::detail {
template <class T, class Arch>
class gaussian_head {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                "attune: the fast Gauss transform is a plan in double: float and double tensors only");
  using W = double;
  using near_type = near_pairs<T, Arch, scalar_scores>;

 public:
  gaussian_head(parameter const& tau, double tolerance, sight const& sees, arrays<T> const& in, extents const& e,
                index_t b, index_t h)
      : e_(e), b_(b), h_(h), tolerance_(tolerance), sees_(sees), tau_(tau.template value<W>(b, h, 0)), on_(in, e, b, h),
        sums_(e.queries, e.width), series_(e.width + 1), value_(in, e, b, h), near_(in, e, b, h, tau_),
        lse_(std::size_t(e.queries)) {}

  /// The share that a row lacks is at most the largest share of its rectangles.
  gaussian_certificate forward() {
    gaussian_certificate worst;
    for_each_visible(
        sees_, on_, near_type::most_keys,
        [&](std::span<index_t const> queries, std::span<index_t const> keys) {
          worst.include(rectangle(queries, keys).forward(sums_));
        },
        [&](index_t i, index_t first, index_t last) { near_.add(i, first, last); });
    near_.forward([&](index_t i, W const& reference, W const* row) { sums_.join(i, reference, row); });
    if (!sees_.sees_all()) worst.rounded += near_rounding();
    return worst;
  }
  /// After forward().
  void write(results<T> const& to) {
    store_head(to, b_, h_, e_.queries, sums_, [&](index_t i) { return sums_.finish(i); });
  }

  /// After forward(): the exact gradients of the approximate weights w~: da_ij = w~_ij <(do_i, -R_i), (v_j, 1)>, a =
  /// -(y - u)^2. Returns the gradient by tau.
  W backward(result_cotangents<T> const& by, gradient_views<T> const& d) {
    for (index_t i = 0; i < e_.queries; ++i) lse_[std::size_t(i)] = sums_.finish(i);
    make_pulls(e_, b_, h_, by, lse_, sums_.sums());
    rows<W> const& pulls = sums_.sums();
    std::vector<W> dq(std::size_t(e_.queries), W(0)), dk(std::size_t(e_.keys), W(0));
    rows<W> dv(e_.keys, e_.width + 1);
    for_each_visible(
        sees_, on_, near_type::most_keys,
        [&](std::span<index_t const> queries, std::span<index_t const> keys) {
          rectangle(queries, keys).backward(pulls, lse_, dq, dk, dv);
        },
        [](index_t, index_t, index_t) {});
    W const unit = 2 / std::sqrt(tau_);
    near_.backward(pulls, lse_, unit, dq, dk, dv);
    // Scores do not change when scalars are multiplied by a factor and tau by its square, nor when all scalars are
    // shifted. The series keep that within the tolerance, and so does the gradient by tau.
    W by_tau = 0;
    W const origin = e_.keys > 0 ? on_.k[std::size_t(e_.keys / 2)] : W(0);
    for (index_t i = 0; i < e_.queries; ++i) by_tau -= (on_.q[std::size_t(i)] - origin) * dq[std::size_t(i)];
    for (index_t j = 0; j < e_.keys; ++j) by_tau -= (on_.k[std::size_t(j)] - origin) * dk[std::size_t(j)];
    add_to_gradients(e_, b_, h_, dq, dk, dv, unit, d);
    return by_tau * unit / 2 / tau_;
  }

 private:
  gaussian_rectangle<Arch> rectangle(std::span<index_t const> queries, std::span<index_t const> keys) {
    return {queries, keys, on_, tau_, tolerance_, e_.width, series_, [&](index_t j) { return value_(j); }};
  }
  /// Rounding of the sums in near_, and of joining the parts of a row; like the rounding() of the windowed head,
  /// without vectors and in double.
  W near_rounding() {
    W deepest = 0;
    for (index_t i = 0; i < e_.queries; ++i)
      if (W const mass = sums_[i][e_.width]; mass > 0)
        deepest = (std::max)(deepest, -(sums_.reference(i) + std::log(mass)));
    return 0x1p-53 * (16 * (deepest + std::log(W(e_.keys) + 1)) + 2.2 * W(near_type::most_keys) + 400);
  }

  extents const& e_;
  index_t b_, h_;
  double tolerance_;
  sight const& sees_;
  W tau_;
  scalars<W> on_;
  mass_rows<W> sums_;
  series<Arch> series_;
  value_rows<T, W> value_;
  near_type near_;
  std::vector<W> lse_;
};

/// Computes a head whose visible pairs form one staircase, by waves, directly into the outputs. Returns nothing if
/// waves do not apply.
template <class T, class Arch>
std::optional<gaussian_certificate> forward_by_waves(parameter const& bandwidth, double tolerance, sight const& sees,
                                                     arrays<T> const& in, extents const& e, index_t b, index_t h,
                                                     results<T> const& to) {
  std::vector<index_t> const counts = lone_staircase(sees, shortest_block);
  if (counts.empty()) return std::nullopt;
  scalars<double> const on(in, e, b, h);
  double const tau = bandwidth.template value<double>(b, h, 0);
  auto const finish = [&](index_t i, double const& reference, double* row, double mass) {
    store_row(to, b, h, i, row,
              finish_masses<normalizer::softmax>(normalizer::softmax::bound<double>{}, reference, mass, 0.0, 1.0));
  };
  gaussian_certificate worst;
  std::vector<index_t> late;
  double const rows_of_tables = walk_waves<T, Arch>(
      in, e, b, h, on, tau, tolerance, {counts, {0, false}, {0, false}}, worst,
      [&](index_t i, double* row, double mass) { finish(i, 0, row, mass); }, [&](index_t i) { late.push_back(i); });
  if (rows_of_tables == 0) return std::nullopt;
  // Single rows are computed as long as they cost at most half of the waves' work; pairs computed singly are slow.
  double work = rows_of_tables / 2 * double(e.width);
  rows<double> one(1, e.width);
  for (index_t const i : late) {
    lone_row<T> const row(in, e, b, h, on, tau, tolerance, i, counts[std::size_t(i)], one[0]);
    work -= double(counts[std::size_t(i)]) + 4 * double(row.met) * double(e.width);
    if (work < 0) return std::nullopt;
    worst.include(row.left_out);
    finish(i, row.reference, one[0], row.mass);
  }
  return worst;
}

/// The arguments are checked; sees(b, h) is the sight of a head.
template <class T, class Arch, class Sees>
gaussian_certificate run_gaussian(parameter const& tau, double tolerance, Sees const& sees, arrays<T> const& in,
                                  extents const& e, results<T> const& to, workers const& who) {
  return report_of_heads<gaussian_certificate>(who, e, [&](index_t b, index_t h) {
    sight const seen = sees(b, h);
    if (auto const by_waves = forward_by_waves<T, Arch>(tau, tolerance, seen, in, e, b, h, to)) return *by_waves;
    gaussian_head<T, Arch> head(tau, tolerance, seen, in, e, b, h);
    auto const certificate = head.forward();
    head.write(to);
    return certificate;
  });
}
/// by_tau: the gradients by the bandwidth of each (batch, head).
template <class T, class Arch, class Sees>
gaussian_certificate run_gaussian_vjp(parameter const& tau, double tolerance, Sees const& sees, arrays<T> const& in,
                                      extents const& e, result_cotangents<T> const& by, gradient_views<T> const& d,
                                      std::vector<double>& by_tau, workers const& who) {
  clear(d.sort_k);
  clear(d.v);
  by_tau.assign(std::size_t(e.batch * e.heads), 0);
  return report_of_heads<gaussian_certificate>(who, e, [&](index_t b, index_t h) {
    sight const seen = sees(b, h);
    gaussian_head<T, Arch> head(tau, tolerance, seen, in, e, b, h);
    auto const certificate = head.forward();
    by_tau[std::size_t(b * e.heads + h)] = head.backward(by, d);
    return certificate;
  });
}

}  // namespace attune::line::detail
