// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   equals.find(weights);   equals.square([&](std::size_t key) { return v(key); })
//
// Keys with equal weights: a kernel that rounds weights makes one error for all of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace attune::certify::detail {

/// The sets of equal weights of a row.
class equal_weights {
 public:
  /// Finds them. `weights` must outlive the calls of square().
  void find(std::vector<double> const& weights) {
    weights_ = &weights;
    order_.resize(weights.size());
    std::iota(order_.begin(), order_.end(), std::size_t(0));
    std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) { return weights[a] < weights[b]; });
  }
  /// The sum, over the sets of two or more keys, of (sum over the set of w v)^2.
  template <class Value>
  double square(Value const& value) const {
    double all = 0;
    for (std::size_t first = 0, last; first < order_.size(); first = last) {
      double const w = (*weights_)[order_[first]];
      double sum = 0;
      for (last = first; last < order_.size() && (*weights_)[order_[last]] == w; ++last)
        if (w != 0) sum += w * value(order_[last]);
      if (last - first > 1) all += sum * sum;
    }
    return all;
  }

 private:
  std::vector<double> const* weights_ = nullptr;
  std::vector<std::size_t> order_;  ///< equal weights next to each other
};

}  // namespace attune::certify::detail
