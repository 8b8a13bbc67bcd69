// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   e^(-(y - u)^2) = e^(-y^2) e^(-u^2) sum_m (2 y)^m u^m / m!        y = (q - c) / sqrt(tau),  u = (k - c) / sqrt(tau)
//
// How a 1-D fast Gauss transform goes about one head: runs of neighbouring queries (boxes), the window of keys that can matter to
// them, and how many terms of the series they need, all with a bound on what is left out, relative to each row's own mass.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include <attune/sorted/gaussian_window.hpp>
#include <attune/sorted/problem.hpp>
#include <attune/sorted/series.hpp>

namespace attune::sorted {

namespace detail {

/// A run of queries [first, last) and its window of keys [lo, hi), both in sorted order. order: terms of the series; 0: pair by pair.
struct gaussian_box {
  index_t first, last, lo, hi;
  int order;
  double center, half;  ///< of the queries; half the extent over sqrt(tau)
  double missing;       ///< bound on the mass that the series leaves out of a row, over e^(-y^2)
};

/// Queries of one box lie within this many sqrt(tau): wider boxes are fewer and need more terms, between one and two it hardly matters.
inline constexpr double box_width = 1.0;

/// log of max over 0 <= u <= farthest of e^(-u^2) e^(2 y u) (2 y u)^p / p!, y = half: bounds what terms p, p + 1, ... of one key's
/// series come to anywhere in the box (Lagrange's form of the remainder; where the exponent is negative the factor e^(2 y u) is spare).
inline double log_remainder(double half, double farthest, int p) {
  double const u = std::min(farthest, (half + std::sqrt(half * half + 2.0 * p)) / 2);
  if (half * u == 0) return p == 0 ? 0 : -std::numeric_limits<double>::infinity();
  return -u * u + 2 * half * u + p * std::log(2 * half * u) - std::lgamma(p + 1.0);
}

/// Plans one head: `q` and `k` ascending, `share` what windows and series may leave out of a row, half each.
inline std::vector<gaussian_box> plan_gaussian(std::span<double const> q, std::span<double const> k, double tau, double share) {
  std::vector<gaussian_box> plan;
  double const unit = std::sqrt(tau), log_share = std::log(share / 2);
  auto const nearest = [&](double x) {
    auto const at = std::lower_bound(k.begin(), k.end(), x);
    double d = std::numeric_limits<double>::infinity();
    if (at != k.end()) d = *at - x;
    if (at != k.begin()) d = std::min(d, x - *(at - 1));
    return d / unit;
  };
  auto const count_below = [&](double x, bool closed) {
    return index_t((closed ? std::upper_bound(k.begin(), k.end(), x) : std::lower_bound(k.begin(), k.end(), x)) - k.begin());
  };
  double const n = double(k.size());
  for (std::size_t first = 0; first < q.size() && !k.empty();) {
    std::size_t last = first;
    double away = 0;
    // A query far from every key has a box of its own: its window is narrow, and would be as wide as its neighbours'.
    for (; last < q.size() && q[last] - q[first] <= box_width * unit; ++last) {
      double const d = nearest(q[last]);
      if (last > first && std::fabs(d * d - away * away) > 4 && std::max(d, away) > 4) break;
      away = std::max(away, d);
    }
    gaussian_box box{index_t(first), index_t(last), 0, 0, 0, q[first] + (q[last - 1] - q[first]) / 2, 0, 0};
    box.half = (q[last - 1] - q[first]) / unit / 2;
    double const reach = window_reach(away, n, log_share);
    box.lo = count_below(q[first] - reach * unit, false);
    box.hi = count_below(q[last - 1] + reach * unit, true);
    // Every row has at least the mass of its nearest key, and of all keys among the queries.
    double const among = double(count_below(q[last - 1], true) - count_below(q[first], false));
    double const log_mass = std::max(-away * away, among > 0 ? std::log(among) - 4 * box.half * box.half : -1e300);
    double const farthest = std::max(box.center - k[std::size_t(box.lo)], k[std::size_t(box.hi - 1)] - box.center) / unit;
    double const pairs = double(box.last - box.first) * double(box.hi - box.lo);
    for (int p = 1; p <= most_terms && farthest < 20; ++p) {
      double const log_missing = std::log(double(box.hi - box.lo)) + log_remainder(box.half, farthest, p);
      if (log_missing > log_share + log_mass) continue;
      if (1.5 * p * double(box.last - box.first + box.hi - box.lo) < pairs) box.order = p;
      box.missing = std::exp(log_missing);
      break;
    }
    plan.push_back(box);
    first = last;
  }
  return plan;
}

}  // namespace detail
}  // namespace attune::sorted
