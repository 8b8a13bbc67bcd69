// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   products.multiply(in.q, in.k, b, h, head, i, {first, last});   products.of(j)    <q_i, k_j> on `rounded`
//
// The products of one row with many keys, with the effect of rounding: the numbers that sums of `rounded` have, packs
// of keys at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <attune/certify/rounded.hpp>
#include <attune/certify/row/row_values.hpp>
#include <attune/exec/reference/any_tensor.hpp>

namespace attune::certify::detail {

class key_products {
 public:
  /// Multiplies row (b, h, i) of x with keys [first, last) of head `head` of y.
  void multiply(any_tensor const& x, any_tensor const& y, index_t b, index_t h, index_t head, index_t i, index_t first,
                index_t last) {
    load(y, b, head);
    width_ = std::size_t(x.extents().feature);
    row_.resize(width_);
    row_is_finite_ = true;
    x.row(b, h, i, [&](auto const* from, index_t step) {
      for (std::size_t d = 0; d < width_; ++d) {
        row_[d] = double(from[index_t(d) * step]);
        row_is_finite_ = row_is_finite_ && std::isfinite(row_[d]);
      }
    });
    products_.resize(blocks_.size() / (std::max<std::size_t>)(width_, 1));
    if (width_ == 0 || !row_is_finite_) return;
    double const least = smallest(row_.data(), width_);
    for (std::size_t k = std::size_t(first) / pack; k * pack < std::size_t(last); ++k)
      if (least * least_[k] >= (std::numeric_limits<double>::min)())  // no product is 0
        multiply_pack<false>(k);
      else
        multiply_pack<true>(k);
  }
  /// Whether of(j) is known: not where a number is infinite or NaN.
  bool knows(index_t j) const { return row_is_finite_ && width_ > 0 && finite_[std::size_t(j)] != 0; }
  rounded const& of(index_t j) const { return products_[std::size_t(j)]; }

 private:
  /// The smallest magnitude of n numbers.
  static double smallest(double const* x, std::size_t n) {
    double to = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < n; ++i) to = std::fmin(to, std::fabs(x[i]));
    return to;
  }
  /// The products of the row with the keys of pack k. Zeros: whether products may be 0, which no sum counts.
  template <bool Zeros>
  void multiply_pack(std::size_t k) {
    double value[pack]{}, size[pack]{}, terms[pack]{};
    double const* at = blocks_.data() + k * pack * width_;
    for (std::size_t d = 0; d < width_; ++d, at += pack) {
      double const q = row_[d];
      for (std::size_t n = 0; n < pack; ++n) {
        double const t = q * at[n];
        value[n] += t;
        size[n] += std::fabs(t);
        if constexpr (Zeros) terms[n] += t != 0 ? 1 : 0;
      }
    }
    for (std::size_t n = 0; n < pack; ++n) {
      rounded& r = products_[k * pack + n];
      r = rounded();
      double const count = Zeros ? terms[n] : double(width_);
      if (count == 0) continue;
      r.value = value[n];
      r.size = size[n];
      r.rounds = multiplication + addition * (count - 1);
    }
  }
  /// Keeps the keys of one head as (pack of keys, feature, key of the pack).
  void load(any_tensor const& y, index_t b, index_t head) {
    if (b == batch_ && head == head_) return;
    shape const& e = y.extents();
    std::size_t const keys = std::size_t(e.position), width = std::size_t(e.feature);
    blocks_.assign((keys + pack - 1) / pack * pack * width, 0);
    finite_.assign(keys, 1);
    for (std::size_t j = 0; j < keys; ++j)
      y.row(b, head, index_t(j), [&](auto const* from, index_t step) {
        for (std::size_t d = 0; d < width; ++d) {
          double const number = double(from[index_t(d) * step]);
          blocks_[(j / pack * width + d) * pack + j % pack] = number;
          if (!std::isfinite(number)) finite_[j] = 0;
        }
      });
    least_.clear();
    for (std::size_t at = 0; at < blocks_.size(); at += pack * width)
      least_.push_back(smallest(blocks_.data() + at, pack * width));
    batch_ = b, head_ = head;
  }

  std::vector<double> blocks_, row_;
  std::vector<double> least_;  // the smallest magnitude of each pack
  std::vector<char> finite_;
  std::vector<rounded> products_;
  std::size_t width_ = 0;
  index_t batch_ = -1, head_ = -1;
  bool row_is_finite_ = true;
};

}  // namespace attune::certify::detail
