// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   by_lse.begin(precision, lse);   by_lse.see(values, weights, out);   by_lse.worst(d, |out_d|), by_lse.scatter(d)
//
// The effect of a rounded lse on a row that is normalized or merged by it, if precision::lse_roundings says that
// kernels may do so. x = lse_roundings unit (1 + |lse|) bounds the error of the row's lse and of the lse of each part.
//   e^(s - lse)                          x |out|
//   sum of e^(lse_i - lse) out_i         x |out| + x sum w |v - out|: the lse of each part has an error of its own
//   out -= sigmoid(lse_i - lse) (out - out_i)    x sum w |v - out|; and out - out_i cancels: lse_roundings unit max |v|
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <attune/certify/number_format.hpp>
#include <attune/certify/row/row_values.hpp>

namespace attune::certify::detail {

/// The rounding unit of an lse: of the arithmetic, and never of 16 bits.
inline double unit_of_lse(precision const& how) {
  return std::fmin(format_of(how.arithmetic).unit, format_of(storage::fp32).unit);
}
/// The largest error of an lse.
inline double error_of_lse(precision const& how, double lse) {
  return std::isfinite(lse) ? how.lse_roundings * unit_of_lse(how) * (1 + std::fabs(lse)) : 0;
}
/// Its standard deviation, for kernels with three roundings, or merges of many parts.
inline double deviation_of_lse(precision const& how, double lse) {
  return how.lse_roundings > 0 ? error_of_lse(how, lse) / how.lse_roundings : 0;
}

/// The errors of a row.
class lse_errors {
 public:
  void begin(precision const& how, double lse) {
    of_row_ = error_of_lse(how, lse);
    deviation_ = deviation_of_lse(how, lse);
    unit_ = of_row_ > 0 ? unit_of_lse(how) : 0;
    times_ = how.lse_roundings;
    apart_.clear();
    largest_.clear();
  }
  /// The values of the row's keys, their weights, and the sum of both.
  void see(row_values const& v, std::vector<double> const& w, std::vector<double> const& out) {
    if (of_row_ == 0) return;
    apart_.assign(v.stride(), 0);
    largest_.assign(v.stride(), 0);
    for (std::size_t first = 0; first < v.stride(); first += pack) {
      double sum[pack]{}, most[pack]{}, y[pack];
      for (std::size_t d = 0; d < pack; ++d) y[d] = out[first + d];
      double const* const column = v.column(first);
      for (std::size_t n = 0; n < v.size(); ++n) {
        double const* const x = column + v.place(n);
        for (std::size_t d = 0; d < pack; ++d) {
          sum[d] += w[n] * std::fabs(x[d] - y[d]);
          most[d] = std::fabs(x[d]) > most[d] ? std::fabs(x[d]) : most[d];
        }
      }
      for (std::size_t d = 0; d < pack; ++d) apart_[first + d] = sum[d], largest_[first + d] = most[d];
    }
  }

  /// The largest error of the lse.
  double of_row() const { return of_row_; }
  double deviation() const { return deviation_; }
  /// The largest error of feature d; size: |out|.
  double worst(std::size_t d, double size) const {
    return apart_.empty() ? 0 : of_row_ * (size + magnitude(apart_[d])) + times_ * unit_ * magnitude(largest_[d]);
  }
  /// Its standard deviation, without the factor that all features of the row share.
  double scatter(std::size_t d) const {
    return apart_.empty() ? 0 : deviation_ * magnitude(apart_[d]) + unit_ * magnitude(largest_[d]);
  }

 private:
  double of_row_ = 0, deviation_ = 0, unit_ = 0, times_ = 0;
  std::vector<double> apart_,  ///< sum of w |v - out|
      largest_;                ///< of |v|
};

}  // namespace attune::certify::detail
