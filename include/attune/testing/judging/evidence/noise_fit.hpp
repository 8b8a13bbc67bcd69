// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   noise_fit fit(gate, regions);   fit.add({residual, variance, size, sign, row, regions});   fit.fits(least, most)
//
// Are residuals independent errors of deviation c * size, such as an intermediate result that was rounded leaves? They
// have to follow `size` as well as a separate deviation for each row does, for a c that rounding can have, and no part
// of the rows may lean to one side.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <attune/core/math.hpp>

namespace attune::testing::detail {

/// The deviation of a sum of `terms` that is rounded after each tile of at least 16, in units of its format.
inline double most_roundings(double terms) { return std::fmin(16, 1 + 0.6 * std::sqrt(terms / 16)); }

class noise_fit {
 public:
  struct number {
    double residual, variance,  ///< variance: of rounding that is expected
        size;
    bool negative;  ///< the sign of the exact number
    std::uint32_t row;
    std::vector<int> const* regions;  ///< of the row
  };
  noise_fit(double gate, int regions) : gate_(gate), regions_(std::size_t(regions)) {}
  /// Numbers of a row come one after another.
  void add(number const& x) { of_.push_back(x); }

  /// Whether a c between the ends describes the residuals.
  bool fits(double least, double most) {
    if (of_.size() < 32) return false;
    double none = 0, rows = 0;
    plain_ = 0;
    for_each_row([&](std::size_t first, std::size_t last) {
      double square = 0;
      for (std::size_t n = first; n < last; ++n) {
        double const r2 = of_[n].residual * of_[n].residual;
        square += r2;
        none -= r2 / of_[n].variance + std::log(of_[n].variance);
      }
      double const count = double(last - first);
      if (square > 0) plain_ -= count * (1 + std::log(square / count));
      rows += square > 0;
    });
    best_ = -math::infinity<double>();
    // One step beyond each end: a c that lies there fits better than the ends do.
    for (double c = least / step; c <= 1.01 * step * most; c *= step) {
      double fit = 0;
      for (number const& x : of_) {
        double const variance = x.variance + c * c * x.size * x.size;
        fit -= x.residual * x.residual / variance + std::log(variance);
      }
      if (fit > best_) best_ = fit, size_ = c;
    }
    none_ = none;
    return best_ > plain_ - 3 * rows - 6 && size_ > 0.99 * least && size_ < 1.01 * most && !leans();
  }
  double size() const { return size_; }
  double z() const { return std::sqrt(std::fmax(best_ - none_, 0)); }
  /// Only errors that follow `size` from number to number are evidence; a size alone is a hint.
  bool is_certain() const { return best_ - plain_ > 0.1 * double(of_.size()); }
  /// The part of the residuals' size that is where the fit has it, row by row.
  double share() const {
    double seen = 0, off = 0, by_chance = 0;
    for_each_row([&](std::size_t first, std::size_t last) {
      double square = 0, expected = 0, spread = 0;
      for (std::size_t n = first; n < last; ++n) {
        number const& x = of_[n];
        double const of_fit = 1 + size_ * size_ * x.size * x.size / x.variance;
        square += x.residual * x.residual / x.variance;
        expected += of_fit;
        spread += 2 * of_fit * of_fit;
      }
      // Large rows count less than in proportion: a few of them are no sample.
      double const scale = std::fmax(expected, square);
      if (!(scale > 0)) return;
      seen += square / scale;
      off += std::fabs(square - expected) / scale;
      by_chance += std::sqrt(spread * 2 / 3.14159265358979) / scale;
    });
    return seen > 0 ? std::clamp(1 - std::fmax(0, off - by_chance) / seen, 0., 1.) : 0;
  }

 private:
  static constexpr double step = 1.15;

  template <class Visit>
  void for_each_row(Visit const& visit) const {
    for (std::size_t first = 0, last; first < of_.size(); first = last) {
      for (last = first; last < of_.size() && of_[last].row == of_[first].row;) ++last;
      visit(first, last);
    }
  }
  /// Whether the rows of a region have errors of one sign, as multiples of `size`: rounding has none, a factor does.
  bool leans() const {
    struct sums {
      double count = 0, sum = 0, square = 0;
    };
    std::vector<sums> of(regions_);
    for_each_row([&](std::size_t first, std::size_t last) {
      double product = 0, square = 0;
      for (std::size_t n = first; n < last; ++n) {
        number const& x = of_[n];
        double const variance = x.variance + size_ * size_ * x.size * x.size, along = x.negative ? -x.size : x.size;
        product += x.residual * along / variance;
        square += along * along / variance;
      }
      if (!(square > 0)) return;
      double const z = product / std::sqrt(square);
      for (int id : *of_[first].regions) {
        sums& s = of[std::size_t(id)];
        s.count += 1, s.sum += z, s.square += z * z;
      }
    });
    for (sums const& s : of) {
      if (s.count < 8) continue;
      double const mean = s.sum / s.count, variance = std::fmax(s.square / s.count - mean * mean, 0.1);
      if (std::fabs(mean) > gate_ * std::sqrt(variance / s.count)) return true;
    }
    return false;
  }

  double gate_;
  std::size_t regions_;
  std::vector<number> of_;
  double size_ = 0, best_ = 0, plain_ = 0, none_ = 0;
};

}  // namespace attune::testing::detail
