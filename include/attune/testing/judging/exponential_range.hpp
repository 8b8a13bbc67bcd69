// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   exponential_range range(lse of each row, arithmetic);   range.see_rows(element, numbers);   range.found()
//
// A kernel that computes e^a instead of e^(a - m), with m the largest logit of the row, is right where its arithmetic
// has the sum of all e^a. Elsewhere it divides infinities, or 0 by 0. Which rows are lost tells such a kernel.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <attune/testing/verdict_report.hpp>
#include <attune/testing/vocabulary.hpp>

namespace attune::testing::detail {

class exponential_range {
 public:
  /// lse: the exact one of each row (B, H, Lq), the logarithm of its sum of exponentials.
  exponential_range(std::vector<double> lse, storage arithmetic)
      : lse_(std::move(lse)), most_(std::log(format_of(arithmetic).largest)),
        least_(std::log(format_of(arithmetic).least)) {}

  /// An output with numbers for each row.
  void see_rows(worst_element const& of, std::vector<double> const& got) {
    std::size_t const width = std::size_t(of.extents.feature);
    for (std::size_t row = 0; row < lse_.size(); ++row) {
      bool outside = false, infinite = false, zero = true;
      for (std::size_t n = row * width; n < (row + 1) * width; ++n) {
        outside = outside || !(of.ratios[n] <= 1);
        infinite = infinite || !std::isfinite(got[n]);
        zero = zero && got[n] == 0;
      }
      if (!outside) continue;
      bool const over = lse_[row] > most_, under = std::isfinite(lse_[row]) && lse_[row] < least_;
      (over ? over_ : under ? under_ : elsewhere_) += over || under ? infinite || zero : 1;
    }
  }
  /// An output whose numbers are sums over rows. A sum over a lost row is NaN.
  void see_sums(worst_element const& of, std::vector<double> const& got) {
    for (std::size_t n = 0; n < got.size(); ++n) elsewhere_ += !(of.ratios[n] <= 1) && std::isfinite(got[n]);
  }
  /// The finding, if it explains all that is outside its bound.
  std::optional<finding> found(double gate) const {
    if (elsewhere_ != 0 || over_ + under_ == 0) return std::nullopt;
    finding f;
    f.name = over_ == 0    ? "exponentials underflow"
             : under_ == 0 ? "exponentials overflow"
                           : "exponentials overflow and underflow";
    f.hint = " (is the largest logit of a row subtracted from its logits?)";
    f.share = f.estimate = 1;
    f.z = 2 * gate;
    f.power = f.power_of_part = math::infinity<double>();  // nothing is promised of it
    return f;
  }

 private:
  std::vector<double> lse_;
  double most_, least_;
  index_t over_ = 0, under_ = 0,  ///< rows that are lost
      elsewhere_ = 0;             ///< what is wrong and has another cause
};

}  // namespace attune::testing::detail
