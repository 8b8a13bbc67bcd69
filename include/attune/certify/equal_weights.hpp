// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   equals.find(weights);   equals.square([&](std::size_t key) { return v(key); })
//
// Keys with equal weights: a kernel that rounds weights makes one error for all of them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace attune::certify::detail {

/// The sets of two or more equal weights of a row.
class equal_weights {
 public:
  /// Finds them. `weights` must outlive the calls of square(). Complexity: O(keys).
  void find(std::vector<double> const& weights) {
    weights_ = &weights;
    keys_.clear();
    ends_.clear();
    std::size_t size = 16;
    while (size < 2 * weights.size()) size *= 2;
    slots_.assign(size, none);
    next_.assign(weights.size(), none);
    last_.resize(weights.size());
    std::size_t repeated = 0;
    for (std::size_t n = 0; n < weights.size(); ++n) {
      if (weights[n] == 0 || weights[n] != weights[n]) continue;  // a NaN equals nothing
      auto const bits = std::bit_cast<std::uint64_t>(weights[n]);
      std::size_t at = std::uint32_t((bits * 0x9e3779b97f4a7c15u) >> 20) & (size - 1);
      while (slots_[at] != none && weights[slots_[at]] != weights[n]) at = (at + 1) & (size - 1);
      std::size_t const first = slots_[at];
      if (first == none) {
        slots_[at] = last_[n] = std::uint32_t(n);
        continue;
      }
      next_[last_[first]] = std::uint32_t(n);
      last_[first] = std::uint32_t(n);
      ++repeated;
    }
    if (repeated == 0) return;
    for (std::uint32_t first : slots_) {
      if (first == none || next_[first] == none) continue;
      for (std::uint32_t n = first; n != none; n = next_[n]) keys_.push_back(n);
      ends_.push_back(keys_.size());
    }
  }
  /// The sum, over the sets of two or more keys, of (sum over the set of w v)^2.
  template <class Value>
  double square(Value const& value) const {
    double all = 0;
    std::size_t n = 0;
    for (std::size_t end : ends_) {
      double sum = 0;
      for (; n < end; ++n) sum += (*weights_)[keys_[n]] * value(keys_[n]);
      all += sum * sum;
    }
    return all;
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t(0);

  std::vector<double> const* weights_ = nullptr;
  std::vector<std::uint32_t> slots_, next_, last_;  ///< first keys by weight; the next equal key; the last one of a set
  std::vector<std::size_t> keys_, ends_;            ///< the sets, one after the other
};

}  // namespace attune::certify::detail
