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

/// Whether all numbers of an output are within their bounds.
inline bool all_within(std::vector<double> const& got, std::vector<bounded_number> const& wanted) {
  for (std::size_t n = 0; n < got.size(); ++n)
    if (!(share_of_bound(got[n], wanted[n]) <= 1)) return false;
  return true;
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
    if (std::isnan(got[n]) && ratio != 0) ++worst.nan;
    worst.ratios.push_back(float(ratio));
    if (!(ratio > worst.ratio) && n != 0) continue;
    index_t const k = index_t(n), row = k / extents.feature;
    worst.place = {row / (extents.position * extents.head), row / extents.position % extents.head,
                   row % extents.position, k % extents.feature};
    worst.got = got[n], worst.expected = wanted[n].value, worst.bound = wanted[n].bound, worst.ratio = ratio;
  }
  return worst;
}

/// How much larger a sum over the features of a row is than with independent errors. `shared` features have an error of
/// rounded weights in common; storage rounds each feature by itself.
inline double together(bounded_number const& x, double shared, storage out) {
  if (!(shared > 1) || !(x.scatter > 0)) return 1;
  double const stored = format_of(out).unit * std::fabs(x.value) / std::sqrt(3.),
               alone = std::fmin(1, stored * stored / (x.scatter * x.scatter));
  return std::sqrt(alone + (1 - alone) * shared);
}

/// The residuals of a sample of numbers, and the part of them that a direction explains, in every region.
class projections {
 public:
  projections(double gate, regions const& all) : gate_(gate), all_(all) {}

  /// The regions of the numbers that are added next.
  void begin_row(std::vector<int> ids) { ids_.push_back(std::move(ids)); }
  /// output: 0, 1, ...: a finding has a share of each output. accumulation: the part of the drift that rounding leaves,
  /// by which numbers are compared (sigma_of). together: how much the scatter counts more where numbers of a row are
  /// added, because they share errors.
  void add(double got, bounded_number const& wanted, int output = 0, double accumulation = 1. / 3,
           double together = 1) {
    output_.push_back(output);
    outputs_ = (std::max)(outputs_, output + 1);
    bool const usable = std::isfinite(got) && std::isfinite(wanted.value) && std::isfinite(wanted.bound);
    residual_.push_back(usable ? got - wanted.value : 0);
    usable_.push_back(usable);
    drift_.push_back(wanted.drift);
    sigma_.push_back(sigma_of(wanted, accumulation));
    scatter_.push_back(together * wanted.scatter);
    exact_.push_back(wanted.value);
    row_.push_back(ids_.size() - 1);
  }
  /// Call after the last number and the last common error. `stored`: the format to which the outputs were rounded.
  void close(storage stored) {
    double mean = 0;
    for (double x : sigma_) mean += x / double(sigma_.size());
    for (std::size_t n = 0; n < sigma_.size(); ++n) {
      double shared = 0;
      for (auto const& noise : common_) shared += noise[n] * noise[n] / double(common_.size());
      double const size = std::fmax(std::sqrt(sigma_[n] * sigma_[n] + shared), 1e-3 * mean);
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

  /// Those that were added.
  std::vector<std::vector<double>> const& common() const { return common_; }

  /// Says that the residuals of an output exceed what rounding leaves: a finding has to explain them.
  void must_explain(int output) { unexplained_.push_back(output); }

  /// Says that an output is the gradient of a parameter.
  void is_parameter(int output) { parameters_.push_back(output); }
  bool must_explain_any() const { return !unexplained_.empty(); }
  bool must_be_explained(int output) const {
    return std::find(unexplained_.begin(), unexplained_.end(), output) != unexplained_.end();
  }

  std::size_t size() const { return residual_.size(); }
  double residual(std::size_t n) const { return residual_[n]; }
  double metric(std::size_t n) const { return metric_[n]; }
  double total() const { return total_; }
  /// The weighted square of what a change leaves of a residual.
  double left(std::size_t n, double change) const {
    double const x = residual_[n] - change;
    return metric_[n] == 0 ? 0 : x * x * metric_[n];
  }
  /// The weighted square of the residual that is to be explained, and in how many numbers it lies: all of them, if they
  /// are normal or equal; 1, if one is much larger than the rest.
  struct spread {
    double total, numbers;
  };
  spread to_explain() const {
    double square = 0, fourth = 0, count = 0;
    for (std::size_t n = 0; n < residual_.size(); ++n) {
      if (!usable_[n] || (must_explain_any() && !must_be_explained(output_[n]))) continue;
      double const x = residual_[n] * residual_[n] * metric_[n];
      square += x, fourth += x * x, count += 1;
    }
    return {square, fourth > 0 ? std::fmin(3 * square * square / fourth - 2, count) : 1};
  }
  /// How many projections of one direction are tested.
  index_t tests() const { return index_t(all_.count()); }
  /// The part of the residual that rounding does not explain: its weighted square minus its expectation.
  double excess() const {
    double expected = 0;
    for (bool usable : usable_) expected += usable;
    return std::fmax(total_ - expected, 0.1 * total_);
  }

  /// Fills in estimate, z, power, gain and region of a finding whose direction is `along`. parts: whether the finding
  /// may hold in one region alone.
  finding judged(finding f, std::vector<double> const& along, bool parts = true) const {
    f.directed = true;
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
    for (int k = 1; k < regions::kinds && parts; ++k) {
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

  /// A finding that is noise: in number n of the rows `in`, an independent error of deviation c * size[n], for a c
  /// between the ends. It has to describe the residuals as well as a separate deviation for each row does.
  finding judged_as_noise(finding f, std::vector<double> const& size, double least, double most,
                          std::vector<int> const& in) const {
    f.last_resort = true;
    f.power = f.power_of_part = math::infinity<double>();
    f.where = all_.words(in);
    f.tested = false;
    std::vector<std::size_t> of;
    for (std::size_t n = 0; n < size.size(); ++n)
      if (usable_[n] && metric_[n] > 0 && size[n] > 0 && is_in(ids_[row_[n]], in)) of.push_back(n);
    if (of.size() < 32) return f;
    double plain = 0;  // the log of the density, with one deviation for each row
    double rows = 0, none = 0;
    for (std::size_t first = 0, last; first < of.size(); first = last) {
      double square = 0;
      for (last = first; last < of.size() && row_[of[last]] == row_[of[first]]; ++last) {
        double const r2 = residual_[of[last]] * residual_[of[last]];
        square += r2;
        none -= r2 * metric_[of[last]] - std::log(metric_[of[last]]);
      }
      double const count = double(last - first);
      if (square > 0) plain -= count * (1 + std::log(square / count));
      rows += square > 0;
    }
    double best = -math::infinity<double>();
    for (double c = least; c <= 1.01 * most; c *= 1.15) {
      double fit = 0;
      for (std::size_t n : of) {
        double const variance = 1 / metric_[n] + c * c * size[n] * size[n];
        fit -= residual_[n] * residual_[n] / variance + std::log(variance);
      }
      if (fit > best) best = fit, f.estimate = c;
    }
    if (!(best > plain - 3 * rows - 6)) return f;
    f.tested = true;
    f.z = std::sqrt(std::fmax(best - none, 0));
    // Only errors that follow `size` from number to number are evidence; a size alone is a hint.
    double const better = (best - plain) / double(of.size());
    f.share = better > 0.1 ? 0.9 : 0.5 + 0.05 * std::clamp(better, -1., 1.);
    for (int output : unexplained_)
      if (std::none_of(of.begin(), of.end(), [&](std::size_t n) { return output_[n] == output; })) f.share = 0;
    f.gain = f.share * excess();
    return f;
  }

 private:
  static bool is_in(std::vector<int> const& ids, std::vector<int> const& parts) {
    return parts.empty() || std::any_of(ids.begin(), ids.end(), [&](int id) {
             return std::find(parts.begin(), parts.end(), id) != parts.end();
           });
  }
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
    std::vector<double> total(outputs, 0), expected(outputs, 0);
    for (std::size_t n = 0; n < along.size(); ++n) {
      if (!usable_[n]) continue;
      std::size_t const k = std::size_t(output_[n]);
      total[k] += residual_[n] * residual_[n] * metric_[n];
      expected[k] += 1;
      auto const& ids = ids_[row_[n]];
      if (std::none_of(shown.begin(), shown.end(),
                       [&](int id) { return std::find(ids.begin(), ids.end(), id) != ids.end(); }))
        continue;
      of[k].square += along[n] * along[n] * metric_[n];
      of[k].product += along[n] * residual_[n] * metric_[n];
    }
    double const theta = f.parameter ? f.estimate : 1;
    double least = 1;
    bool any = unexplained_.empty();
    for (int k : unexplained_) {
      if (f.of_inputs && std::find(parameters_.begin(), parameters_.end(), k) != parameters_.end()) continue;
      any = true;
      sums const& s = of[std::size_t(k)];
      // Common errors vary a lot: where they leave little of a residual, little is known of its excess.
      double const known = common_.empty() ? 0.1 : 0.3,
                   excess = std::fmax(total[std::size_t(k)] - expected[std::size_t(k)], known * total[std::size_t(k)]);
      least = std::fmin(least, theta * (2 * s.product - theta * s.square) / std::fmax(excess, 1e-300));
    }
    if (!any) return 0;
    if (unexplained_.empty()) least = f.gain / std::fmax(excess(), 1e-300);
    // A finding that changes an output, and the output does not change like this, is wrong.
    for (sums const& s : of)
      if (theta * theta * s.square > 2 * gate_ * gate_ && theta * (2 * s.product - theta * s.square) < 0) least = 0;
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
      if (!usable_[n]) continue;  // a direction may be infinite there
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
      // 1.5: the variance of so few samples may come out too small.
      for (std::size_t n = 0; n < of.size(); ++n)
        of[n].variance += 1.5 * response[n] * response[n] / double(common_.size());
    }
  }

  double gate_;
  regions const& all_;
  std::vector<std::vector<int>> ids_;  ///< the regions of each row
  std::vector<std::size_t> row_;       ///< of each number
  std::vector<int> output_;            ///< of each number
  std::vector<int> unexplained_;       ///< outputs
  std::vector<int> parameters_;        ///< outputs
  int outputs_ = 1;
  std::vector<double> residual_, drift_, scatter_, sigma_, metric_, exact_;
  std::vector<bool> usable_, alike_;
  std::vector<std::size_t> order_;
  std::vector<std::vector<double>> common_;
  double total_ = 0;
};

}  // namespace attune::testing::detail
