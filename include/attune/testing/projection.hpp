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
#include <cstdio>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <attune/core/stable_sort.hpp>
#include <attune/testing/judging/energy.hpp>
#include <attune/testing/judging/regions.hpp>
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

/// The residuals of a sample of numbers, and the part of them that a direction explains, in every region.
class projections {
 public:
  projections(double gate, regions const& all) : gate_(gate), all_(all) {}

  /// The regions of the numbers that are added next.
  void begin_row(std::vector<int> ids) { ids_.push_back(std::move(ids)); }
  /// output: 0, 1, ...: a finding has a share of each output.
  void add(double got, bounded_number const& wanted, int output = 0) {
    output_.push_back(output);
    outputs_ = (std::max)(outputs_, output + 1);
    bool const usable = std::isfinite(got) && std::isfinite(wanted.value) && std::isfinite(wanted.bound);
    residual_.push_back(usable ? got - wanted.value : 0);
    usable_.push_back(usable);
    drift_.push_back(wanted.drift);
    scatter_.push_back(wanted.scatter);
    exact_.push_back(wanted.value);
    row_.push_back(ids_.size() - 1);
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

  /// Says that the residuals of an output exceed what rounding leaves: a finding has to explain them.
  void must_explain(int output) { unexplained_.push_back(output); }

  bool must_explain_any() const { return !unexplained_.empty(); }
  bool must_be_explained(int output) const {
    return std::find(unexplained_.begin(), unexplained_.end(), output) != unexplained_.end();
  }

  std::size_t size() const { return residual_.size(); }
  double residual(std::size_t n) const { return residual_[n]; }
  double metric(std::size_t n) const { return metric_[n]; }
  double total() const { return total_; }
  /// How many projections of one direction are tested.
  index_t tests() const { return index_t(all_.count()); }
  /// The part of the residual that rounding does not explain: its weighted square minus its expectation.
  double excess() const {
    double const usable = double(std::count(usable_.begin(), usable_.end(), true));
    return std::fmax(total_ - usable, 0.1 * total_);
  }

  /// Fills in estimate, z, power, gain and region of a finding whose direction is `along`.
  finding judged(finding f, std::vector<double> const& along) const {
    std::vector<sums> of(std::size_t(all_.count()));
    for (std::size_t n = 0; n < along.size(); ++n) {
      if (!usable_[n]) continue;
      if (!std::isfinite(along[n])) {  // the defect reads a NaN or infinity, and the kernel does not
        f.power = f.power_of_part = 0;
        return f;
      }
      double const x = along[n] * metric_[n];
      if (x == 0) continue;
      for (int id : ids_[row_[n]]) {
        sums& s = of[std::size_t(id)];
        s.square += along[n] * x;
        s.product += residual_[n] * x;
        s.allowed += drift_[n] * std::fabs(x);
      }
    }
    f.power = f.power_of_part = math::infinity<double>();
    if (of[0].square == 0 || of[0].allowed / of[0].square > 1e12) {
      f.tested = false;
      return f;
    }
    add_variances(of, along);
    std::vector<int> shown{0};
    sums best = of[0];
    f.power_of_part = f.power = power_of(best);
    double gain = gain_of(f, best);
    for (int k = 1; k < regions::kinds; ++k) {
      std::vector<int> members;
      sums together;
      for (int id = 0; id < all_.count(); ++id) {
        sums const& s = of[std::size_t(id)];
        if (all_.at(id).by != regions::kind(k) || s.square == 0) continue;
        // Blocks of rows may hardly see a defect, and dk says little about a defect that dq shows.
        if (k >= int(regions::kind::batch) && k != int(regions::kind::block))
          f.power_of_part = std::fmax(f.power_of_part, power_of(s));
        double const z = z_of(s);
        if (!((f.parameter ? std::fabs(z) : z) > gate_)) continue;
        if (!members.empty() && (s.product < 0) != (together.product < 0)) continue;
        members.push_back(id);
        together.add(s);
      }
      if (members.empty()) continue;
      double const explains = gain_of(f, together);
      if (!(explains > 1.1 * std::fmax(gain, 0.))) continue;
      gain = explains, best = together, shown = members;
    }
    f.estimate = best.product / best.square;
    f.z = z_of(best);
    f.gain = gain;
    f.where = all_.words(shown);
    f.share = share_of(f, along, shown);
    return f;
  }

 private:
  /// Of a direction in a region.
  struct sums {
    double square = 0, product = 0, allowed = 0, variance = 0;
    void add(sums const& x) {
      square += x.square;
      product += x.product;
      allowed += x.allowed;
      variance += x.variance;
    }
  };
  double power_of(sums const& s) const { return (s.allowed + gate_ * std::sqrt(s.variance)) / s.square; }
  double z_of(sums const& s) const { return gate_ * s.product / s.square / power_of(s); }
  static double gain_of(finding const& f, sums const& s) {
    double const theta = f.parameter ? s.product / s.square : 1;  // a defect is either present or not
    return theta * (2 * s.product - theta * s.square);
  }

  /// The part of the residual's excess that a finding explains: of the output that it explains least.
  double share_of(finding const& f, std::vector<double> const& along, std::vector<int> const& shown) const {
    std::size_t const outputs = std::size_t(outputs_);
    std::vector<sums> of(outputs);
    std::vector<double> total(outputs, 0), usable(outputs, 0);
    for (std::size_t n = 0; n < along.size(); ++n) {
      if (!usable_[n]) continue;
      std::size_t const k = std::size_t(output_[n]);
      total[k] += residual_[n] * residual_[n] * metric_[n];
      usable[k] += 1;
      auto const& ids = ids_[row_[n]];
      if (std::none_of(shown.begin(), shown.end(),
                       [&](int id) { return std::find(ids.begin(), ids.end(), id) != ids.end(); }))
        continue;
      of[k].square += along[n] * along[n] * metric_[n];
      of[k].product += along[n] * residual_[n] * metric_[n];
    }
    double const theta = f.parameter ? f.estimate : 1;
    double least = 1;
    for (int k : unexplained_) {
      sums const& s = of[std::size_t(k)];
      double const excess = std::fmax(total[std::size_t(k)] - usable[std::size_t(k)], 0.1 * total[std::size_t(k)]);
      least = std::fmin(least, theta * (2 * s.product - theta * s.square) / std::fmax(excess, 1e-300));
    }
    if (unexplained_.empty()) least = f.gain / std::fmax(excess(), 1e-300);
    return std::clamp(least, 0., 1.);
  }

  void add_variances(std::vector<sums>& of, std::vector<double> const& along) const {
    std::vector<double> sum(of.size(), 0), squares(of.size(), 0);
    std::vector<int> touched;
    auto const close = [&] {
      for (int id : touched) {
        std::size_t const n = std::size_t(id);
        of[n].variance += std::fmax(sum[n] * sum[n], squares[n]);
        sum[n] = squares[n] = 0;
      }
      touched.clear();
    };
    for (std::size_t k = 0; k < order_.size(); ++k) {
      if (!alike_[k]) close();
      std::size_t const n = order_[k];
      double const x = along[n] * metric_[n] * scatter_[n];
      if (x == 0) continue;
      for (int id : ids_[row_[n]]) {
        if (squares[std::size_t(id)] == 0) touched.push_back(id);
        sum[std::size_t(id)] += x;
        squares[std::size_t(id)] += x * x;
      }
    }
    close();
    for (auto const& noise : common_) {
      std::vector<double> response(of.size(), 0);
      for (std::size_t n = 0; n < along.size(); ++n) {
        double const x = along[n] * metric_[n] * noise[n];
        if (x == 0 || !usable_[n]) continue;
        for (int id : ids_[row_[n]]) response[std::size_t(id)] += x;
      }
      for (std::size_t n = 0; n < of.size(); ++n) of[n].variance += response[n] * response[n] / double(common_.size());
    }
  }

  double gate_;
  regions const& all_;
  std::vector<std::vector<int>> ids_;  ///< the regions of each row
  std::vector<std::size_t> row_;       ///< of each number
  std::vector<int> output_;            ///< of each number
  std::vector<int> unexplained_;       ///< outputs
  int outputs_ = 1;
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

/// Median of what rounding may leave of the finite numbers, `gate` standard deviations, divided by their root mean
/// square.
inline double condition_of(std::vector<bounded_number> const& numbers, double accumulation, double gate) {
  std::vector<double> sizes;
  double square = 0;
  for (bounded_number const& x : numbers)
    if (std::isfinite(x.value)) {
      sizes.push_back(std::fmin(x.bound, gate * sigma_of(x, accumulation)));
      square += x.value * x.value;
    }
  if (sizes.empty() || square == 0) return 0;
  auto const middle = sizes.begin() + std::ptrdiff_t(sizes.size() / 2);
  std::nth_element(sizes.begin(), middle, sizes.end());
  return *middle / std::sqrt(square / double(sizes.size()));
}

/// A number with three digits.
inline std::string rounded_text(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", x);
  return text;
}

/// Orders the findings, decides, and gives the reasons. `limit`: of the condition.
inline void conclude(verdict_report& report, projections const& seen, verdict_options const& how, double limit) {
  auto& findings = report.findings;
  bool const outside = any_outside(report);
  bool const noticed = !how.proved_only && any_noticed(report, how.gate);
  energy_excess const* high = nullptr;
  for (energy_excess const& e : report.energies)
    if (e.found && !how.proved_only && (high == nullptr || e.times / e.limit > high->times / high->limit)) high = &e;
  index_t const tests = index_t(findings.size()) * seen.tests();
  report.false_alarms += double(tests) * std::erfc(how.gate / std::sqrt(2.));
  report.seed = how.seed;
  // If a parameter and a definite defect explain the residual equally well, the definite defect is more likely.
  auto const merit = [&](finding const& f) {
    return (f.tested ? f.share + 1e-3 * f.gain / std::fmax(seen.total(), 1e-300) : 0) * (f.last_resort ? 0.9
                                                                                         : f.parameter ? 0.98
                                                                                                       : 1.0);
  };
  attune::detail::sort_stably(findings, [&](finding const& a, finding const& b) { return merit(a) > merit(b); });
  auto say = [&](std::string const& text) { report.reasons.push_back(text); };
  if (outside || noticed || high != nullptr) {
    report.decision = judgement::fail;
    report.ground = outside ? failure_ground::proved : failure_ground::statistical;
    finding const* first = findings.empty() ? nullptr : &findings[0];
    // If elements are outside their bounds, something is certainly wrong, so weaker evidence suffices for the cause.
    double const needed = outside ? how.gate / 3 : how.gate;
    report.share = first != nullptr ? first->share : 0;
    report.caused = first != nullptr && first->tested && (first->parameter ? std::fabs(first->z) : first->z) > needed &&
                    report.share > 0.25;
    if (report.caused) {
      say((report.share < 0.6 ? "in part " : "") + first->words() +
          attune::detail::text(" (z = ", std::round(first->z), ", explains ", std::round(100 * report.share),
                               " % of the residual)"));
    } else {
      say("no known defect explains it");
    }
    if (high != nullptr && (!report.caused || report.share < 0.6))
      say(high->output + attune::detail::text(": the residuals", high->where.empty() ? "" : " ", high->where, " are ",
                                              rounded_text(high->times), " times what rounding leaves (at most ",
                                              rounded_text(high->limit), " in a correct kernel)"));
    for (worst_element const& e : report.elements)
      if (e.outside > 0)
        say(e.output + attune::detail::text(" at (", e.place.batch, ", ", e.place.head, ", ", e.place.position, ", ",
                                            e.place.feature, ") is ", e.got, ", exact ", e.expected, " +- ", e.bound));
    if (!outside)
      say(attune::detail::text(
          "statistical: every element is within its bound; of the reports on correct kernels, at most ",
          rounded_text(report.false_alarms), " say FAIL like this"));
    return;
  }
  if (report.condition > limit) {
    report.decision = judgement::undecidable;
    say(attune::detail::text("ill-conditioned: what rounding leaves exceeds ", limit,
                             " of the typical number in half of the elements: nothing can be concluded"));
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
