// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   e^(-(y - u)^2) = sum_m y^m sum_a (-1)^m / m! h_(a+m)(-d) t^a / a!        h_n(x) = H_n(x) e^(-x^2)
//
// with y = (q - box) / sqrt(tau) and t = (k - cell) / sqrt(tau), relative to two centers at distance d = (cell - box) /
// sqrt(tau). The plan of a 1-D fast Gauss transform for queries and keys that all see each other. It has runs of
// neighboring queries (boxes) and of neighboring keys (cells), the window of relevant cells for each box, and the
// number of series terms per box. All dropped parts are bounded relative to each row's own mass.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include <attune/line/call/problem.hpp>
#include <attune/line/certificates.hpp>
#include <attune/line/gaussian/series.hpp>
#include <attune/line/gaussian/window.hpp>

namespace attune::line::detail {

/// Maximum length of runs (boxes and cells), in sqrt(tau). Shorter runs are more numerous and need fewer terms; near
/// one half the choice hardly matters.
inline constexpr double run_width = 0.5;

/// A run of keys [first, last) in sorted order.
struct gaussian_cell {
  index_t first, last;
  double center;
};
/// A run of queries [first, last), its window of keys [lo, hi), and the same window in whole cells. order: the number
/// of terms of the series; 0: pair by pair.
struct gaussian_box {
  index_t first, last, lo, hi, first_cell, last_cell;
  int order;
  double center;
  double missing;  ///< bound on the mass that the series drops from a row
  double size;     ///< bound on the sum of the absolute terms of a row; rounding is relative to it

  /// Bound on the rounding of a row's mass by a series with this number of terms.
  double rounding(int terms) const { return 0x1p-53 * (double(hi - lo) + 64 * (terms + 4)) * size; }
};
struct gaussian_plan {
  std::vector<gaussian_box> boxes;
  std::vector<gaussian_cell> cells;
  int most_terms = 0;  ///< largest of all boxes
};

/// Bounds by Cramer's inequality |h_n(x)| <= K 2^(n/2) sqrt(n!) e^(-x^2/2), for |t| and |y| up to half a run's width.
class series_bounds {
  static constexpr double cramer = 1.086435;

 public:
  series_bounds() {
    double const r = run_width / 2 * std::sqrt(2.0);
    auto const term = [&](int a, int m) {  // (r^a / a!) (r^m / m!) sqrt((a + m)!)
      return std::exp((a + m) * std::log(r) - std::lgamma(a + 1.0) - std::lgamma(m + 1.0) +
                      std::lgamma(a + m + 1.0) / 2);
    };
    for (int p = 0; p <= most_terms; ++p) {
      // Terms of t from p on (Lagrange), then, of the remaining terms, the terms of y from p on.
      double left_out = std::exp(p * std::log(r) - std::lgamma(p + 1.0) / 2), taken = 0;
      for (int a = 0; a < p; ++a) left_out += term(a, p);
      for (int a = 0; a < p; ++a)
        for (int m = 0; m < p; ++m) taken += term(a, m);
      left_out_[p] = cramer * left_out;
      taken_[p] = cramer * taken;
    }
  }
  /// For one key at a distance with e^(-d^2/2) = 1: the error of p terms for e^(-(y - u)^2), and the sum of their
  /// absolute values.
  double left_out(int p) const { return left_out_[p]; }
  double taken(int p) const { return taken_[p]; }

 private:
  double left_out_[most_terms + 1], taken_[most_terms + 1];
};

/// Splits x into runs of at most run_width sqrt(tau) and calls use(first, last) for each.
template <class Ends, class Use>
void for_each_run(std::span<double const> x, double unit, Ends const& ends, Use const& use) {
  for (std::size_t first = 0; first < x.size();) {
    std::size_t last = first + 1;
    while (last < x.size() && x[last] - x[first] <= run_width * unit && !ends(first, last)) ++last;
    use(first, last);
    first = last;
  }
}

/// Plans queries and keys that see each other: `q` and `k` ascending. `share`: the share of a row that windows and
/// series may drop, half each.
inline gaussian_plan plan_gaussian(std::span<double const> q, std::span<double const> k, double tau, double share) {
  static series_bounds const bounds;
  gaussian_plan plan;
  if (k.empty() || q.empty()) return plan;
  double const unit = std::sqrt(tau), log_share = std::log(share / 2);
  auto const center = [](std::span<double const> x, std::size_t first, std::size_t last) {
    return x[first] + (x[last - 1] - x[first]) / 2;
  };
  for_each_run(
      k, unit, [](std::size_t, std::size_t) { return false; },
      [&](std::size_t first, std::size_t last) {
        plan.cells.push_back({index_t(first), index_t(last), center(k, first, last)});
      });
  auto const nearest = [&](double x) {
    auto const at = std::lower_bound(k.begin(), k.end(), x);
    double d = std::numeric_limits<double>::infinity();
    if (at != k.end()) d = *at - x;
    if (at != k.begin()) d = (std::min)(d, x - *(at - 1));
    return d / unit;
  };
  std::vector<double> away_of;
  for (double const x : q) away_of.push_back(nearest(x));
  auto const count_below = [&](double x, bool closed) {
    return (closed ? std::upper_bound(k.begin(), k.end(), x) : std::lower_bound(k.begin(), k.end(), x)) - k.begin();
  };
  double const n = double(k.size());
  // A query far from every key gets its own box: its window is narrow, but with its neighbors it would be as wide as
  // theirs.
  double away = 0;
  auto const far_apart = [&](std::size_t first, std::size_t at) {
    if (at == first + 1) away = away_of[first];
    double const d = away_of[at];
    if (std::fabs(d * d - away * away) > 4 && (std::max)(d, away) > 4) return true;
    away = (std::max)(away, d);
    return false;
  };
  for_each_run(q, unit, far_apart, [&](std::size_t first, std::size_t last) {
    double farthest = 0;
    for (std::size_t r = first; r < last; ++r) farthest = (std::max)(farthest, away_of[r]);
    gaussian_box box{index_t(first), index_t(last), 0, 0, 0, 0, 0, center(q, first, last), 0, 0};
    double const reach = window_reach(farthest, n, log_share);
    box.lo = count_below(q[first] - reach * unit, false);
    box.hi = count_below(q[last - 1] + reach * unit, true);
    // Every row has at least the mass of its nearest key, and the mass of all keys among the queries.
    double const among = double(count_below(q[last - 1], true) - count_below(q[first], false));
    double const mass = (std::max)(std::exp(-farthest * farthest), among * std::exp(-run_width * run_width));
    auto const cell_at = [&](index_t j) {
      return std::upper_bound(plan.cells.begin(), plan.cells.end(), j,
                              [](index_t a, gaussian_cell const& c) { return a < c.first; }) -
             plan.cells.begin() - 1;
    };
    box.first_cell = cell_at(box.lo);
    box.last_cell = cell_at(box.hi - 1) + 1;
    double near_keys = 0;  // keys, each weighted by e^(-d^2/2) at its least distance
    for (index_t c = box.first_cell; c < box.last_cell; ++c) {
      gaussian_cell const& cell = plan.cells[std::size_t(c)];
      double const d = (std::max)(0.0, std::fabs(cell.center - box.center) / unit - run_width);
      near_keys += double(cell.last - cell.first) * std::exp(-d * d / 2);
    }
    double const pairs = double(last - first) * double(box.hi - box.lo), cells = double(box.last_cell - box.first_cell);
    for (int p = 1; p <= most_terms; ++p) {
      if (bounds.left_out(p) * near_keys > share / 2 * mass) continue;
      if (1.5 * p * (double(last - first) + cells * p) >= pairs) break;
      box.missing = bounds.left_out(p) * near_keys;
      box.size = bounds.taken(p) * near_keys;
      // Far from its keys, a series is a small difference of large terms; farther away both are 0.
      bool const cancels = box.size > 1e4 * mass && box.rounding(p) > share / 4 * mass;
      if (cancels || mass < 1e-250) break;
      box.order = p;
      box.lo = plan.cells[std::size_t(box.first_cell)].first;
      box.hi = plan.cells[std::size_t(box.last_cell - 1)].last;
      plan.most_terms = (std::max)(plan.most_terms, p);
      break;
    }
    plan.boxes.push_back(box);
  });
  return plan;
}

}  // namespace attune::line::detail
