// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   e^(-(y - u)^2)  =  sum_m c_m cos(m h (y - u))  -  images,
//       c_m = h / sqrt(pi) e^(-h^2 m^2 / 4), half of it for m = 0
//
// A Gaussian on a bounded line is a sum of a few waves (Poisson's formula; the images are Gaussians 2 pi / h away). The
// number of waves depends on the length of the line and on the error that a row's mass allows: with many queries and
// heavy rows, few waves suffice. So the line is cut into boxes of queries. Each box has the keys that matter to it and
// its own waves.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <span>
#include <vector>

#include <attune/core/tensor.hpp>

namespace attune::line::detail {

/// The number of waves, and their error for e^(-x^2), |x| <= reach.
struct wave_plan {
  static constexpr int most_waves = 256;
  double step;     ///< h
  int waves;       ///< M
  double missing;  ///< bound on the error of one pair

  /// Rows of a table of this many waves.
  index_t rows() const { return 2 * waves + 1; }
  double coefficient(int m) const {
    return step * std::numbers::inv_sqrtpi * std::exp(-step * step * m * m / 4) / (m == 0 ? 2 : 1);
  }

  /// A sufficient number of waves: a few more than the minimum, without a search.
  static double enough(double reach, double missing) {
    return std::ceil(2 * std::sqrt(-std::log(missing / 2)) / step_for(reach, missing));
  }
  /// The smallest plan; nothing if it needs more than most_waves.
  static std::optional<wave_plan> of(double reach, double missing) {
    // Images: of the two nearest, one may be as near as `farthest`, the other no nearer than reach + farthest, and
    // those behind them are much farther: less than 3 e^(-farthest^2). Waves after the last: less than erfc(h M / 2) <=
    // e^(-(h M / 2)^2).
    double const most = enough(reach, missing);
    if (!(most <= most_waves)) return std::nullopt;
    wave_plan plan{step_for(reach, missing), int(most), missing};
    while (plan.waves > 0 && std::erfc(plan.step * (plan.waves - 1) / 2) <= missing / 2) --plan.waves;
    return plan;
  }

 private:
  static double step_for(double reach, double missing) {
    double const farthest = std::sqrt(-std::log(missing / 8));  // e^(-farthest^2) is an eighth of `missing`
    return 2 * std::numbers::pi / (reach + farthest);
  }
};

/// The queries in cells [first, last) of the line, and the keys in cells [first_key, last_key), which include all keys
/// within the distance `within` of these queries.
struct wave_box {
  index_t first, last, first_key, last_key;
  double within;
  wave_plan waves;
};

/// A line in cells of equal width, and the boxes of queries with the least work. Boxes without queries are dropped.
class wave_boxes {
 public:
  static constexpr index_t most_cells = 64;
  static constexpr double longest =
      1e4;  ///< of a line, in units of sqrt(tau): cells of a longer one would need too many waves
  /// Rows with a smaller share of their keys' masses than this are not planned for.
  static constexpr double least_share = 2e-4;

  /// Shares of the tolerance for the error of waves, for keys far from a box, and for rounding.
  static constexpr double by_waves = 0.6, by_distance = 0.25, by_rounding = 0.15;

  /// q, k: finite, in units of sqrt(tau). `tolerance`: the share of its mass that a row may lack.
  wave_boxes(std::span<double const> q, std::span<double const> k, double tolerance) : tolerance_(tolerance) {
    auto const [least_q, most_q] = std::minmax_element(q.begin(), q.end());
    auto const [least_k, most_k] = std::minmax_element(k.begin(), k.end());
    least_ = (std::min)(*least_q, *least_k);
    range_ = ((std::max)(*most_q, *most_k) - least_) * (1 + 1e-12);
    if (!(range_ <= longest)) return;
    cells_ = std::clamp<index_t>(index_t((std::min)(2 * range_, double(most_cells))), 1, most_cells);
    if (range_ > 1e-200) width_ = range_ / double(cells_);
    queries_ = sort(q, cell_of_query_);
    keys_ = sort(k, cell_of_key_);
    find_shares();
    cut();
  }

  double range() const { return range_; }
  index_t cells() const { return cells_; }
  std::size_t cell_of_query(index_t i) const { return cell_of_query_[std::size_t(i)]; }
  std::size_t cell_of_key(index_t j) const { return cell_of_key_[std::size_t(j)]; }
  double center(wave_box const& box) const { return least_ + double(box.first + box.last) / 2 * width_; }
  /// In the order of the line. Empty if the line is too long, or if a box would need more than the maximum number of
  /// waves.
  std::span<wave_box const> boxes() const { return boxes_; }
  /// Total number of table rows that queries read and that keys are added to.
  double work() const { return work_; }

 private:
  /// Computes the cell of each number; returns how many numbers lie before each cell.
  std::vector<index_t> sort(std::span<double const> x, std::vector<unsigned char>& cell_of) const {
    double const per_unit = 1 / width_;
    cell_of.reserve(x.size());
    for (double const at : x)
      cell_of.push_back(static_cast<unsigned char>((std::min)(int((at - least_) * per_unit), int(cells_) - 1)));
    std::vector<index_t> before(std::size_t(cells_) + 1, 0);
    for (unsigned char const c : cell_of) ++before[std::size_t(c) + 1];
    for (std::size_t c = 1; c < before.size(); ++c) before[c] += before[c - 1];
    return before;
  }
  /// The share of all keys' masses that a row has at either end of a cell, the lesser of the two. Half of it is used,
  /// because rows with few keys may have more or less.
  void find_shares() {
    std::vector<double> at_end;
    for (index_t end = 0; end <= cells_; ++end) {
      double mass = 0;
      for (index_t c = 0; c < cells_; ++c) {
        double const d = (double(end - c) - 0.5) * width_;
        mass += double(keys_[std::size_t(c) + 1] - keys_[std::size_t(c)]) * std::exp(-d * d);
      }
      at_end.push_back(mass / double(keys_.back()));
    }
    for (std::size_t c = 0; c < std::size_t(cells_); ++c)
      share_.push_back((std::max)(least_share, (std::min)(at_end[c], at_end[c + 1]) / 2));
  }

  struct estimate {
    wave_box box;
    double reach, missing, work;
  };
  index_t queries(index_t first, index_t last) const {
    return queries_[std::size_t(last)] - queries_[std::size_t(first)];
  }
  /// Cost estimate for the queries of cells [first, last), whose rows have at least `share` of all keys' masses.
  estimate estimate_of(index_t first, index_t last, double share) const {
    // Additional costs, in rows: of a query, mostly for its pairs in its block; of a key, mostly for loading it into
    // the block. A block has at least one tile of queries.
    constexpr double by_query = 24, by_key = 30, least_queries = 0.12;
    double const by_row = by_waves * tolerance_ * share,
                 within = std::sqrt(-std::log(by_distance * tolerance_ * share));
    index_t const beyond = index_t((std::min)(std::ceil(within / width_), double(cells_)));
    estimate e{{first,
                last,
                (std::max<index_t>)(0, first - beyond),
                (std::min)(cells_, last + beyond),
                within * (1 - 1e-9),
                {}},
               0,
               0,
               0};
    double const keys = double(keys_[std::size_t(e.box.last_key)] - keys_[std::size_t(e.box.first_key)]);
    e.reach = double((std::max)(last - e.box.first_key, e.box.last_key - first)) * width_ * (1 + 1e-9);
    e.missing = (std::min)(by_row * double(keys_.back()) / (std::max)(keys, 1.0), by_waves * tolerance_);
    double const rows = 2 * wave_plan::enough(e.reach, e.missing) + 1;
    e.work =
        (rows + by_query) * (std::max)(double(queries(first, last)), least_queries * keys) + (rows + by_key) * keys;
    return e;
  }

  /// The cheapest cuts of the line up to each cell, computed from the cheapest cuts of shorter lines.
  void cut() {
    struct best {
      index_t first = 0;
      double share = 1, work = 0;
    };
    std::vector<best> of(std::size_t(cells_) + 1);
    for (index_t last = 1; last <= cells_; ++last) {
      best& least = of[std::size_t(last)];
      least.work = std::numeric_limits<double>::infinity();
      double share = 1;
      for (index_t first = last; first-- > 0;) {
        if (queries(first, first + 1) > 0) share = (std::min)(share, share_[std::size_t(first)]);
        double const work =
            of[std::size_t(first)].work + (queries(first, last) > 0 ? estimate_of(first, last, share).work : 0);
        if (work < least.work) least = {first, share, work};
      }
    }
    work_ = of.back().work;
    for (index_t last = cells_; last > 0; last = of[std::size_t(last)].first) {
      best const& box = of[std::size_t(last)];
      if (queries(box.first, last) == 0) continue;
      estimate e = estimate_of(box.first, last, box.share);
      auto const waves = wave_plan::of(e.reach, e.missing);
      if (!waves) return boxes_.clear();
      e.box.waves = *waves;
      boxes_.push_back(e.box);
    }
    std::reverse(boxes_.begin(), boxes_.end());
  }

  double tolerance_, least_, range_, width_ = 1, work_ = 0;
  index_t cells_ = 1;
  std::vector<index_t> queries_, keys_;  ///< counts before each cell
  std::vector<unsigned char> cell_of_query_, cell_of_key_;
  std::vector<double> share_;
  std::vector<wave_box> boxes_;
};

}  // namespace attune::line::detail
