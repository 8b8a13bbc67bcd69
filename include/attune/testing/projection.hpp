// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   theta = <r, D> / <D, D>      r: the residual, D: the effect of a defect, in the metric of the expected errors
//   power = <drift, |D|> / <D, D>  +  gate * the deviation of <scatter, D> / <D, D>
//
// The part of a verdict that does not depend on attention: numbers with bounds, directions, and residuals.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <attune/core/stable_sort.hpp>
#include <attune/testing/verdict_options.hpp>
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

/// Compares every element of one output with its expected value.
inline worst_element compared(std::string const& output, shape const& extents, std::vector<double> const& got,
                              std::vector<bounded_number> const& wanted) {
  worst_element worst;
  worst.output = output;
  worst.extents = extents;
  worst.count = index_t(got.size());
  worst.ratios.reserve(got.size());
  for (std::size_t n = 0; n < got.size(); ++n) {
    double const ratio = share_of_bound(got[n], wanted[n]);
    if (!(ratio <= 1)) ++worst.outside;
    worst.ratios.push_back(float(ratio));
    if (!(ratio > worst.ratio) && n != 0) continue;
    index_t const k = index_t(n), row = k / extents.feature;
    worst.place = {row / (extents.position * extents.head), row / extents.position % extents.head,
                   row % extents.position, k % extents.feature};
    worst.got = got[n], worst.expected = wanted[n].value, worst.bound = wanted[n].bound, worst.ratio = ratio;
  }
  return worst;
}

/// The residuals of a sample of numbers, and the part of them that a direction explains.
class projections {
 public:
  explicit projections(double gate) : gate_(gate) {}

  void add(double got, bounded_number const& wanted) {
    bool const usable = std::isfinite(got) && std::isfinite(wanted.value) && std::isfinite(wanted.bound);
    residual_.push_back(usable ? got - wanted.value : 0);
    usable_.push_back(usable);
    drift_.push_back(wanted.drift);
    scatter_.push_back(wanted.scatter);
    exact_.push_back(wanted.value);
  }
  /// Call after the last number. `stored`: the format to which the outputs were rounded.
  void close(storage stored) {
    double mean = 0;
    std::vector<double> s(residual_.size());
    for (std::size_t n = 0; n < s.size(); ++n)
      mean += (s[n] = std::hypot(scatter_[n], drift_[n] / 3)) / double(s.size());
    for (std::size_t n = 0; n < s.size(); ++n) {
      double const size = std::fmax(s[n], 1e-3 * mean);
      metric_.push_back(usable_[n] && size > 0 ? 1 / (size * size) : 0);
      total_ += residual_[n] * residual_[n] * metric_[n];
    }
    // Equal numbers round alike: the errors of elements with the same stored value count as one error.
    std::vector<double> rounded;
    for (double x : exact_) rounded.push_back(rounded_to(stored, x));
    order_.resize(rounded.size());
    std::iota(order_.begin(), order_.end(), std::size_t(0));
    std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) { return rounded[a] < rounded[b]; });
    for (std::size_t n = 0; n < order_.size(); ++n)
      alike_.push_back(n > 0 && rounded[order_[n]] == rounded[order_[n - 1]]);
  }
  /// Adds an error that many numbers share: a direction with an independent random size in every correct kernel.
  void add_common(std::vector<double> noise) { common_.push_back(std::move(noise)); }

  std::size_t size() const { return residual_.size(); }
  double residual(std::size_t n) const { return residual_[n]; }
  double metric(std::size_t n) const { return metric_[n]; }
  double total() const { return total_; }
  /// The part of the residual that rounding does not explain: its weighted square minus its expectation.
  double excess() const {
    double const usable = double(std::count(usable_.begin(), usable_.end(), true));
    return std::fmax(total_ - usable, 0.1 * total_);
  }

  /// Fills in estimate, z, power and gain of a finding whose direction is `along`.
  finding judged(finding f, std::vector<double> const& along) const {
    double square = 0, product = 0, allowed = 0;
    for (std::size_t n = 0; n < along.size(); ++n) {
      if (!usable_[n]) continue;
      if (!std::isfinite(along[n])) {  // the defect reads a NaN or infinity, and the kernel does not
        f.power = 0;
        return f;
      }
      double const x = along[n] * metric_[n];
      square += along[n] * x;
      product += residual_[n] * x;
      allowed += drift_[n] * std::fabs(x);
    }
    f.power = math::infinity<double>();
    if (square == 0 || allowed / square > 1e12) {
      f.tested = false;
      return f;
    }
    double variance = 0, sum = 0, squares = 0;
    auto const close = [&] {
      variance += std::fmax(sum * sum, squares);
      sum = squares = 0;
    };
    for (std::size_t k = 0; k < order_.size(); ++k) {
      if (!alike_[k]) close();
      std::size_t const n = order_[k];
      double const x = along[n] * metric_[n] * scatter_[n];
      sum += x;
      squares += x * x;
    }
    close();
    for (auto const& noise : common_) {
      double response = 0;
      for (std::size_t n = 0; n < along.size(); ++n)
        if (usable_[n]) response += along[n] * metric_[n] * noise[n];
      variance += response * response / double(common_.size());
    }
    f.power = (allowed + gate_ * std::sqrt(variance)) / square;
    f.estimate = product / square;
    f.z = gate_ * f.estimate / f.power;
    double const theta = f.parameter ? f.estimate : 1;  // a defect is either present or not
    f.gain = theta * (2 * product - theta * square);
    return f;
  }

 private:
  double gate_;
  std::vector<double> residual_, drift_, scatter_, metric_, exact_;
  std::vector<bool> usable_, alike_;
  std::vector<std::size_t> order_;
  std::vector<std::vector<double>> common_;
  double total_ = 0;
};

inline bool any_outside(verdict_report const& r) {
  return std::any_of(r.elements.begin(), r.elements.end(), [](worst_element const& e) { return e.outside > 0; });
}
inline bool any_noticed(verdict_report const& r, double gate) {
  return std::any_of(r.findings.begin(), r.findings.end(),
                     [&](finding const& f) { return f.tested && std::fabs(f.z) > gate; });
}

/// Median of the bounds of the finite numbers, divided by their root mean square.
inline double condition_of(std::vector<bounded_number> const& numbers) {
  std::vector<double> sizes;
  double square = 0;
  for (bounded_number const& x : numbers)
    if (std::isfinite(x.value)) {
      sizes.push_back(x.bound);
      square += x.value * x.value;
    }
  if (sizes.empty() || square == 0) return 0;
  auto const middle = sizes.begin() + std::ptrdiff_t(sizes.size() / 2);
  std::nth_element(sizes.begin(), middle, sizes.end());
  return *middle / std::sqrt(square / double(sizes.size()));
}

/// Orders the findings, decides, and gives the reasons. `limit`: of the condition.
inline void conclude(verdict_report& report, projections const& seen, verdict_options const& how, double limit) {
  auto& findings = report.findings;
  bool const outside = any_outside(report), noticed = any_noticed(report, how.gate);
  // If a parameter and a definite defect explain the residual equally well, the definite defect is more likely.
  auto const merit = [&](finding const& f) { return (f.tested ? f.gain : 0) * (f.parameter ? 0.98 : 1.0); };
  attune::detail::sort_stably(findings, [&](finding const& a, finding const& b) { return merit(a) > merit(b); });
  auto say = [&](std::string const& text) { report.reasons.push_back(text); };
  if (outside || noticed) {
    report.decision = judgement::fail;
    finding const* first = findings.empty() ? nullptr : &findings[0];
    // If elements are outside their bounds, something is certainly wrong, so weaker evidence suffices for the cause.
    double const needed = outside ? how.gate / 3 : how.gate;
    report.caused = first != nullptr && first->tested && (first->parameter ? std::fabs(first->z) : first->z) > needed &&
                    first->gain > 0.25 * seen.excess();
    if (report.caused) {
      say(first->words() + attune::detail::text(" (z = ", std::round(first->z), ", explains ",
                                                std::round(100 * first->gain / std::fmax(seen.total(), 1e-300)),
                                                " % of the residual)"));
    } else {
      say("no known defect explains it");
    }
    for (worst_element const& e : report.elements)
      if (e.outside > 0)
        say(e.output + attune::detail::text(" at (", e.place.batch, ", ", e.place.head, ", ", e.place.position, ", ",
                                            e.place.feature, ") is ", e.got, ", exact ", e.expected, " +- ", e.bound));
    if (!outside) say("every element is within its bound, but together they lean one way");
    return;
  }
  if (report.condition > limit) {
    report.decision = judgement::undecidable;
    say(attune::detail::text("ill-conditioned: half of the bounds exceed ", limit,
                             " of the typical number: nothing can be concluded"));
  }
  for (demanded const& wanted : how.must_detect) {
    finding const* f = nullptr;
    for (finding const& x : findings)
      if (attune::detail::is_called(x.name, wanted.name)) f = &x;
    if (f == nullptr)
      throw error("testing::verdict", "must_detect", "the name \"" + wanted.name + "\"",
                  "a parameter of the operator or the name of a defect that applies to it");
    if (f->power < wanted.size) continue;
    report.decision = judgement::undecidable;
    say(f->name + attune::detail::text(": ", wanted.size,
                                       " would go unnoticed on these inputs, the smallest to be seen is ", f->power,
                                       ": run the probes (testing/probes.hpp)"));
  }
}

}  // namespace attune::testing::detail
