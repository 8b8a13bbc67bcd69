// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   residuals r;   r.begin_row(regions);   r.add(got, wanted, output);   r.close(storage)
//
// The residuals of a sample of numbers, with two weights each. The weight of noise is 1 / sigma^2: with it rounding is
// told from a defect. The metric gives a defect its share. In it neither a few rows nor a few elements of a row count
// more than the typical wrong ones: in 16 bits the first rows of a causal mask have almost no rounding, and would be
// all that counts.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <attune/testing/judging/energy.hpp>
#include <attune/testing/vocabulary.hpp>

namespace attune::testing::detail {

class residuals {
 public:
  /// The regions of the numbers that are added next, and their batch element, head and position.
  void begin_row(std::vector<int> ids, shape const& place = {0, 0, 0, 0}) {
    ids_.push_back(std::move(ids));
    places_.push_back(place);
  }
  /// output: 0, 1, ...: a finding has a share of each output. accumulation: the part of the drift that rounding leaves,
  /// by which numbers are compared (sigma_of). together: how much the scatter counts more where numbers of a row are
  /// added, because they share errors.
  void add(double got, bounded_number const& wanted, int output = 0, double accumulation = 1. / 3,
           double together = 1) {
    std::uint32_t const row = std::uint32_t(ids_.size() - 1);
    if (output_.empty() || row != row_.back() || output != output_.back()) runs_.push_back({residual_.size()});
    run& of = runs_.back();
    of.zero = of.zero && got == 0;
    of.outside = of.outside || std::fabs(wanted.value) > wanted.bound;
    output_.push_back(output);
    outputs_ = (std::max)(outputs_, output + 1);
    bool const usable = std::isfinite(got) && std::isfinite(wanted.value) && std::isfinite(wanted.bound);
    residual_.push_back(usable ? got - wanted.value : 0);
    usable_.push_back(usable);
    negative_.push_back(wanted.value < 0);
    drift_.push_back(wanted.drift);
    noise_weight_.push_back(sigma_of(wanted, accumulation));  // until close()
    scatter_.push_back(together * wanted.scatter);
    metric_.push_back(wanted.value);  // until close()
    row_.push_back(row);
  }
  /// Call after the last number, the last common error, and must_explain. `stored`: the format to which the outputs
  /// were rounded.
  void close(storage stored) {
    find_equal_numbers(stored);
    double mean = 0;
    for (double x : noise_weight_) mean += x / double(noise_weight_.size());
    for (std::size_t n = 0; n < noise_weight_.size(); ++n) {
      double shared = 0;
      for (auto const& noise : common_) shared += noise[n] * noise[n] / double(common_.size());
      double const size = std::fmax(std::sqrt(noise_weight_[n] * noise_weight_[n] + shared), 1e-3 * mean);
      noise_weight_[n] = usable_[n] && size > 0 ? 1 / (size * size) : 0;
    }
    for (std::size_t k = 0; k < runs_.size(); ++k)
      if (runs_[k].zero && runs_[k].outside)
        for (std::size_t n = runs_[k].first; n < end_of(k); ++n)
          noise_weight_[n] = residual_[n] = 0, usable_[n] = false;
    metric_ = noise_weight_;
    limit_elements();
    limit_rows();
    for (std::size_t n = 0; n < metric_.size(); ++n) {
      total_ += residual_[n] * residual_[n] * metric_[n];
      if (noise_weight_[n] > 0) expected_ += metric_[n] / noise_weight_[n];
    }
    find_spread();
  }
  /// Adds an error that many numbers share: a direction with an independent random size in every correct kernel.
  void add_common(std::vector<double> noise) { common_.push_back(std::move(noise)); }
  /// Those that were added.
  std::vector<std::vector<double>> const& common() const { return common_; }

  /// Says that the residuals of an output exceed what rounding leaves: a finding has to explain them.
  void must_explain(int output, std::string name = {}) {
    unexplained_.push_back(output);
    names_.push_back(std::move(name));
  }
  /// Says where: the excess of each region, 0 within its limit; the smallest part that is wrong.
  void shows(energy_excess const& e, int output) {
    excess_.resize((std::max)(excess_.size(), e.over.size()), 0);
    for (std::size_t n = 0; n < e.over.size(); ++n) excess_[n] += e.over[n];
    boxes_.resize((std::max)(boxes_.size(), std::size_t(output) + 1));
    if (!e.box.words().empty()) boxes_[std::size_t(output)] = {e.box, e.of_keys};
  }
  /// Says that an output is the gradient of a parameter.
  void is_parameter(int output) { parameters_.push_back(output); }
  bool must_explain_any() const { return !unexplained_.empty(); }
  bool must_be_explained(int output) const {
    return std::find(unexplained_.begin(), unexplained_.end(), output) != unexplained_.end();
  }
  /// The outputs that a finding has to explain, and their names.
  std::vector<int> const& unexplained() const { return unexplained_; }
  std::vector<std::string> const& names() const { return names_; }

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
  spread const& to_explain() const { return spread_; }
  /// The part of the residual that rounding does not explain: its weighted square minus its expectation.
  double excess() const { return std::fmax(total_ - expected_, 0.1 * total_); }

 protected:
  /// Numbers of one output next to each other in one row.
  struct run {
    std::size_t first;
    bool zero = true, outside = false;
  };
  /// A part of an output that is wrong; without features: all of it.
  struct wrong_part {
    index_box box{};
    bool of_keys = false;
  };
  std::size_t end_of(std::size_t k) const { return k + 1 < runs_.size() ? runs_[k + 1].first : residual_.size(); }

  std::vector<std::vector<int>> ids_;  ///< the regions of each row
  std::vector<run> runs_;
  std::vector<std::uint32_t> row_;  ///< of each number
  std::vector<int> output_;         ///< of each number
  std::vector<int> unexplained_;    ///< outputs
  std::vector<int> parameters_;     ///< outputs
  std::vector<std::string> names_;  ///< of the unexplained outputs
  int outputs_ = 1;
  std::vector<double> residual_, drift_, scatter_, noise_weight_, metric_;
  std::vector<bool> usable_, negative_, equal_;    ///< equal_: other numbers have the same stored value
  std::vector<std::vector<std::uint32_t>> alike_;  ///< those numbers, by value
  std::vector<std::vector<double>> common_;
  std::vector<double> excess_;     ///< of regions
  std::vector<shape> places_;      ///< of rows
  std::vector<wrong_part> boxes_;  ///< by output
  double total_ = 0, expected_ = 0;
  spread spread_{0, 1};

 private:
  static constexpr double loud = 9;           ///< squares in units of noise that are no rounding
  static constexpr double most_element = 20,  ///< times the median of the loud elements of a row
      most_row = 10;                          ///< times the median of the loud rows of an output

  static double median(std::vector<double>& x) {
    auto const middle = x.begin() + std::ptrdiff_t((x.size() - 1) / 2);
    std::nth_element(x.begin(), middle, x.end());
    return *middle;
  }
  void find_spread() {
    double square = 0, fourth = 0, count = 0;
    for (std::size_t n = 0; n < residual_.size(); ++n) {
      if (!usable_[n] || (must_explain_any() && !must_be_explained(output_[n]))) continue;
      double const x = square_at(n);
      square += x, fourth += x * x, count += 1;
    }
    spread_ = {square, fourth > 0 ? std::fmin(3 * square * square / fourth - 2, count) : 1};
  }
  double square_at(std::size_t n) const { return residual_[n] * residual_[n] * metric_[n]; }
  void limit_elements() {
    std::vector<double> sizes;
    for (std::size_t k = 0; k < runs_.size(); ++k) {
      sizes.clear();
      for (std::size_t n = runs_[k].first; n < end_of(k); ++n)
        if (double const x = square_at(n); x > loud) sizes.push_back(x);
      if (sizes.size() < 2) continue;
      double const most = most_element * median(sizes);
      for (std::size_t n = runs_[k].first; n < end_of(k); ++n)
        if (double const x = square_at(n); x > most) metric_[n] *= most / x;
    }
  }
  void limit_rows() {
    std::vector<double> means(runs_.size());
    std::vector<std::vector<double>> sizes(static_cast<std::size_t>(outputs_));
    for (std::size_t k = 0; k < runs_.size(); ++k) {
      for (std::size_t n = runs_[k].first; n < end_of(k); ++n) means[k] += square_at(n);
      means[k] /= double(end_of(k) - runs_[k].first);
      if (means[k] > loud) sizes[std::size_t(output_[runs_[k].first])].push_back(means[k]);
    }
    std::vector<double> most;
    for (auto& x : sizes) most.push_back(x.size() < 2 ? std::numeric_limits<double>::infinity() : most_row * median(x));
    for (std::size_t k = 0; k < runs_.size(); ++k) {
      double const limit = most[std::size_t(output_[runs_[k].first])];
      if (!(means[k] > limit)) continue;
      for (std::size_t n = runs_[k].first; n < end_of(k); ++n) metric_[n] *= limit / means[k];
    }
  }
  /// Equal numbers round alike: the errors of elements with the same stored value count as one error.
  void find_equal_numbers(storage stored) {
    std::vector<float> rounded;  // the order of the stored values needs no more digits than they have
    rounded.reserve(metric_.size());
    for (double x : metric_) rounded.push_back(std::isnan(x) ? 0 : float(rounded_to(stored, x)));
    std::vector<std::uint32_t> order(rounded.size());
    std::iota(order.begin(), order.end(), std::uint32_t(0));
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return rounded[a] < rounded[b]; });
    equal_.assign(rounded.size(), false);
    for (std::size_t first = 0, last; first < order.size(); first = last) {
      for (last = first + 1; last < order.size() && rounded[order[last]] == rounded[order[first]];) ++last;
      if (last - first < 2) continue;
      for (std::size_t n = first; n < last; ++n) equal_[order[n]] = true;
      alike_.emplace_back(order.begin() + std::ptrdiff_t(first), order.begin() + std::ptrdiff_t(last));
    }
  }
};

}  // namespace attune::testing::detail
