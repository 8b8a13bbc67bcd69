// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   e^(s - lse (1 + x)) = (1 - lse x) e^(s - lse)
//
// A kernel that normalizes rows by a rounded lse multiplies each row of `out` by a factor near 1. The verdict allows
// each row such a factor, and its numbers no more than that.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <attune/certify/row/lse_error.hpp>
#include <attune/core/tensor.hpp>
#include <attune/testing/vocabulary.hpp>

namespace attune::testing::detail {

/// The factors of the rows of `out`.
class row_factors {
 public:
  row_factors() = default;
  /// lse: the exact ones.
  row_factors(std::vector<bounded_number> const& lse, precision const& how)
      : alone_(how.out == how.arithmetic && how.weights == how.arithmetic) {
    for (bounded_number const& x : lse) deviations_.push_back(certify::detail::deviation_of_lse(how, x.value));
  }

  /// The standard deviation of the factor of a row, from 1.
  double deviation(index_t row) const { return deviations_.empty() ? 0 : deviations_[std::size_t(row)]; }
  /// A number of a row, with the error of the lse in its scatter. All features of the row share this error. Projections
  /// add errors as if they were independent, so each counts as the root of the number of features.
  bounded_number with_factor(bounded_number x, index_t row, index_t features) const {
    if (deviation(row) == 0 || !std::isfinite(x.value)) return x;
    double const same = std::sqrt(double(features));
    x.scatter = std::hypot(alone_ ? same * x.scatter : x.scatter, same * deviation(row) * x.value);
    return x;
  }

 private:
  std::vector<double> deviations_;
  bool alone_ = false;  ///< whether the scatter of a number consists of errors of the lse
};

/// Sums over the numbers of a row, in units of their deviations.
class factor_fit {
 public:
  void add(double residual, double value) {
    product_ += residual * value;
    square_ += value * value;
  }
  /// The part of the squares of the residuals that a factor with this deviation explains. The rest is distributed as
  /// the squares of independent numbers.
  double explained(double deviation) const {
    return deviation > 0 ? product_ * product_ / (1 / (deviation * deviation) + square_) : 0;
  }

 private:
  double product_ = 0, square_ = 0;
};

}  // namespace attune::testing::detail
