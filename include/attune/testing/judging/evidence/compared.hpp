// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   compared("out", extents, got, wanted)     how many elements are outside their bounds, and which
//
// Every element of an output against its bound.
#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <attune/testing/judging/evidence/index_words.hpp>
#include <attune/testing/verdict_report.hpp>
#include <attune/testing/vocabulary.hpp>

namespace attune::testing::detail {

/// The error of `got` as a multiple of the bound of `wanted`. Infinite if only one of them is finite; 0 if there is no
/// bound.
inline double share_of_bound(double got, bounded_number const& wanted) {
  double const y = wanted.value;
  return got == y || (std::isnan(got) && std::isnan(y)) ? 0
         : !std::isfinite(y)                            ? math::infinity<double>()
         : wanted.bound == math::infinity<double>()     ? 0
         : std::isfinite(got)                           ? std::fabs(got - y) / wanted.bound
                                                        : math::infinity<double>();
}

/// Whether all numbers of an output are within their bounds.
inline bool all_within(std::vector<double> const& got, std::vector<bounded_number> const& wanted) {
  for (std::size_t n = 0; n < got.size(); ++n)
    if (!(share_of_bound(got[n], wanted[n]) <= 1)) return false;
  return true;
}

/// "head 3 of out", "out"; `is`: with its verb.
inline std::string words_of_part(std::string const& output, index_box const& part, char const* is, char const* are) {
  std::string const where = part.words();
  if (where.empty()) return output + is;
  bool const several = where.find(',') != std::string::npos || where.find("..") != std::string::npos;
  return where + " of " + output + (several ? are : is);
}

/// Names the parts of an output that are NaN or all zeros. Zeros: whole rows, or all that is wrong.
class plain_faults {
 public:
  plain_faults(worst_element& e, std::vector<double> const& got) : e_(e), nan_(e.extents), zero_(e.extents) {
    shape const& x = e.extents;
    index_t zeros_outside = 0;
    for (index_t row = 0; row < x.batch * x.head * x.position; ++row) {
      std::size_t const first = std::size_t(row * x.feature);
      index_t outside = 0, zeros = 0;
      for (std::size_t n = first; n < first + std::size_t(x.feature); ++n) {
        if (got[n] == 0) ++zeros;
        if (e.ratios[n] <= 1) continue;
        ++outside;
        zeros_outside += got[n] == 0;
        add(e.wrong, index_t(n));
        if (std::isnan(got[n])) add(nan_, index_t(n));
      }
      if (outside == 0 || zeros < x.feature) continue;
      e.zero += outside;
      zero_rows_ += 1;
      for (std::size_t n = first; n < first + std::size_t(x.feature); ++n) add(zero_, index_t(n));
    }
    say_zeros(got, zeros_outside);
    say_nan();
  }

 private:
  void add(index_box& to, index_t n) const {
    shape const& x = e_.extents;
    index_t const row = n / x.feature;
    to.add(row / (x.position * x.head), row / x.position % x.head, row % x.position, n % x.feature);
  }
  void say_zeros(std::vector<double> const& got, index_t zeros_outside) {
    constexpr index_t few = 16;
    if (zero_rows_ > 0) {
      e_.plain = zero_.size() == zero_rows_ * e_.extents.feature
                     ? words_of_part(e_.output, zero_, " is all zeros", " are all zeros")
                     : attune::detail::text(zero_rows_, zero_rows_ > 1 ? " rows of " : " row of ", e_.output,
                                            zero_rows_ > 1 ? " are all zeros" : " is all zeros");
      return;
    }
    if (zeros_outside < few || zeros_outside < e_.outside || e_.wrong.size() == e_.count) return;
    index_t inside = 0;  // zeros in the wrong part
    shape const& x = e_.extents;
    for (std::size_t n = 0; n < got.size(); ++n) {
      index_t const row = index_t(n) / x.feature;
      inside += got[n] == 0 && e_.wrong.has(row / (x.position * x.head), row / x.position % x.head, row % x.position,
                                            index_t(n) % x.feature);
    }
    if (inside != e_.wrong.size()) return;
    e_.zero = zeros_outside;
    e_.plain = words_of_part(e_.output, e_.wrong, " is all zeros", " are all zeros");
  }
  void say_nan() {
    if (e_.nan == 0) return;
    std::string const words = e_.nan == e_.count      ? "all elements of " + e_.output + " are NaN"
                              : nan_.size() == e_.nan ? words_of_part(e_.output, nan_, " is all NaN", " are all NaN")
                                                      : attune::detail::text(e_.nan, " of ", e_.count, " elements of ",
                                                                             e_.output, " are NaN");
    e_.plain += (e_.plain.empty() ? "" : ", ") + words;
  }

  worst_element& e_;
  index_box nan_, zero_;
  index_t zero_rows_ = 0;
};

/// Compares every element of one output with its expected value.
inline worst_element compared(std::string const& output, shape const& extents, std::vector<double> const& got,
                              std::vector<bounded_number> const& wanted) {
  worst_element worst;
  worst.output = output;
  worst.extents = extents;
  worst.count = index_t(got.size());
  worst.wrong = index_box(extents);
  worst.ratios.reserve(got.size());
  for (std::size_t n = 0; n < got.size(); ++n) {
    double const ratio = share_of_bound(got[n], wanted[n]);
    if (!(ratio <= 1)) ++worst.outside;
    if (std::isnan(got[n]) && ratio != 0) ++worst.nan;
    worst.ratios.push_back(float(ratio));
    if (!(ratio > worst.ratio) && n != 0) continue;
    index_t const k = index_t(n), row = k / extents.feature;
    worst.place = {row / (extents.position * extents.head), row / extents.position % extents.head,
                   row % extents.position, k % extents.feature};
    worst.got = got[n], worst.expected = wanted[n].value, worst.bound = wanted[n].bound, worst.ratio = ratio;
  }
  if (worst.outside > 0) plain_faults(worst, got);
  return worst;
}

}  // namespace attune::testing::detail
