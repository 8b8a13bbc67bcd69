// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   sum_j w_j v_j      over rows at arbitrary addresses
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <attune/core/tensor.hpp>
#include <attune/line/cache/scores.hpp>

namespace attune::line::detail {

/// A sum with compensation (Neumaier): its error does not grow with the number of terms.
class compensated {
 public:
  void add(double x) {
    double const s = math::as_computed(sum_ + x);
    lost_ += std::fabs(sum_) >= std::fabs(x) ? math::as_computed(sum_ - s) + x : math::as_computed(x - s) + sum_;
    sum_ = s;
  }
  double value() const { return std::isfinite(sum_) ? sum_ + lost_ : sum_; }

 private:
  double sum_ = 0, lost_ = 0;
};

/// Adds weighted rows, block by block: in doubles within a block, compensated between blocks. The rounding error of a
/// row does not grow with its number of keys.
template <class T, class Arch>
class weighted_sum {
  using batch = xsimd::batch<double, Arch>;
  static constexpr index_t lanes = index_t(batch::size), strip = 4 * lanes;

 public:
  static constexpr index_t block = 64;

  explicit weighted_sum(index_t width) : width_(width), block_(std::size_t(width)), sums_(std::size_t(width)) {}

  void clear() { std::fill(sums_.begin(), sums_.end(), compensated()); }

  /// Adds `count` rows, at most one block.
  ATTUNE_NOINLINE void add(T const* const* rows, double const* weights, index_t count) {
    index_t d = 0;
    for (; d + strip <= width_; d += strip) add_strip<4>(rows, weights, count, d);
    for (; d + lanes <= width_; d += lanes) add_strip<1>(rows, weights, count, d);
    for (; d < width_; ++d) {
      double sum = 0;
      for (index_t j = 0; j < count; ++j) sum += weights[j] * double(rows[j][d]);
      block_[std::size_t(d)] = sum;
    }
    for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i].add(block_[i]);
  }
  double operator[](index_t d) const { return sums_[std::size_t(d)].value(); }

 private:
  template <int N>
  ATTUNE_INLINE void add_strip(T const* const* rows, double const* weights, index_t count, index_t d) {
    batch sum[N];
    for (int i = 0; i < N; ++i) sum[i] = batch(0.0);
    for (index_t j = 0; j < count; ++j) {
      batch const w(weights[j]);
      for (int i = 0; i < N; ++i) sum[i] = simd::multiply_add(w, load_wide<Arch>(rows[j] + d + i * lanes), sum[i]);
    }
    for (int i = 0; i < N; ++i) sum[i].store_unaligned(block_.data() + d + i * lanes);
  }

  index_t width_;
  std::vector<double> block_;
  std::vector<compensated> sums_;
};

/// <q, k> with the query in doubles.
template <class T, class Arch>
class query_products {
  using batch = xsimd::batch<double, Arch>;
  static constexpr index_t lanes = index_t(batch::size);

 public:
  explicit query_products(index_t width) : query_(std::size_t(width)) {}

  std::vector<double>& query() { return query_; }
  double norm() const {
    double largest = 0, sum = 0;
    for (double x : query_) largest = (std::max)(largest, std::fabs(x));
    if (largest == 0) return 0;
    for (double x : query_) sum += (x / largest) * (x / largest);
    return largest * std::sqrt(sum) * (1 + double(query_.size() + 8) * std::numeric_limits<double>::epsilon());
  }
  double with(T const* key) const {
    auto const width = index_t(query_.size());
    batch sum(0.0);
    index_t d = 0;
    for (; d + lanes <= width; d += lanes)
      sum = simd::multiply_add(batch::load_unaligned(query_.data() + d), load_wide<Arch>(key + d), sum);
    double lane[batch::size], total = 0;
    sum.store_unaligned(lane);
    for (double x : lane) total += x;
    for (; d < width; ++d) total += query_[std::size_t(d)] * double(key[d]);
    return total;
  }

 private:
  std::vector<double> query_;
};

}  // namespace attune::line::detail
