// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   ranges.next(residual);   ranges.effect(key, effect of its weight);   ranges.best()    {first, last, factor}
//
// The range of keys whose weights, all wrong by one factor, explain most of a residual.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <attune/core/tensor.hpp>

namespace attune::testing::detail {

class key_ranges {
 public:
  /// Keys first .. last - 1 act with 1 + factor times their weight; they explain `gain` of the residual's square.
  struct range {
    index_t first = 0, last = 0;
    double factor = 0, gain = 0;
  };

  key_ranges(index_t keys, index_t numbers)
      : keys_(keys), numbers_(std::size_t(numbers)), sums_(std::size_t(keys + 1) * numbers_, 0) {}

  /// The next number of the residual.
  void next(double residual) { residual_.push_back(residual); }
  /// The derivative of that number by the logarithm of a key's weight.
  void effect(index_t key, double x) { sums_[std::size_t(key + 1) * numbers_ + residual_.size() - 1] = x; }
  /// Of the ranges of at most 256 keys. Complexity: O(keys log(256) numbers). Call it once.
  range best() {
    for (std::size_t j = 1; j <= std::size_t(keys_); ++j)
      for (std::size_t n = 0; n < numbers_; ++n) sums_[j * numbers_ + n] += sums_[(j - 1) * numbers_ + n];
    range best;
    for (index_t length = 1; length <= (std::min<index_t>)(256, keys_ / 2); length *= 2)
      for (index_t first = 0; first + length <= keys_; ++first) better(best, first, first + length);
    for (bool moved = best.first < best.last; moved;) {
      moved = false;
      for (index_t by : {1, -1}) {
        moved = better(best, best.first + by, best.last) || moved;
        moved = better(best, best.first, best.last + by) || moved;
        moved = better(best, best.first + by, best.last + by) || moved;
      }
    }
    return best;
  }

 private:
  bool better(range& best, index_t first, index_t last) const {
    if (first < 0 || last > keys_ || first >= last) return false;
    double square = 0, product = 0;
    double const *low = sums_.data() + std::size_t(first) * numbers_,
                 *high = sums_.data() + std::size_t(last) * numbers_;
    for (std::size_t n = 0; n < residual_.size(); ++n) {
      double const x = high[n] - low[n];
      square += x * x;
      product += x * residual_[n];
    }
    double const gain = square > 0 ? product * product / square : 0;
    if (!(gain > best.gain * (1 + 1e-9))) return false;
    best = {first, last, product / square, gain};
    return true;
  }

  index_t keys_;
  std::size_t numbers_;
  std::vector<double> sums_, residual_;
};

}  // namespace attune::testing::detail
