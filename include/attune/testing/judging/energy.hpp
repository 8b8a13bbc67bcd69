// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   energy of a region = sum over its rows of the mean of (residual / sigma)^2
//
// The size of the residuals against what rounding leaves in a correct kernel, for every row and every region. It sees
// errors that lie between rounding and the worst-case bounds: lost keys in long rows, accumulators in 16 bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <attune/core/tensor.hpp>
#include <attune/testing/judging/evidence/wrong_part.hpp>
#include <attune/testing/judging/regions.hpp>
#include <attune/testing/judging/row_factor.hpp>
#include <attune/testing/verdict_report.hpp>
#include <attune/testing/vocabulary.hpp>

namespace attune::testing::detail {

/// The standard deviation that rounding leaves in an element of a correct kernel: storage and rounded weights, and the
/// accumulation, a factor of the drift.
inline double sigma_of(bounded_number const& x, double accumulation) {
  return std::hypot(x.scatter, accumulation * x.drift);
}

/// The factor of the drift in `sigma_of`, by the format of the accumulation. For fp32 it comes from tests/verdict: with
/// this factor, 200 drawn kernels reach at most a third of a limit.
inline double accumulation_of(storage arithmetic) {
  return arithmetic == storage::fp32 ? 0.08 : 1;  // a reference in fp64 has errors as the kernel does
}
/// The same for the gradient by an input; a parameter counts as q. Gradients through logits have wide bounds: each of
/// their steps counts twice.
inline double accumulation_of(storage arithmetic, field by) {
  bool const value = by == field::v || by == field::v0 || by == field::value_gate || by == field::output_gate;
  return arithmetic == storage::fp32 ? (value ? 0.05 : 0.01) : 1;
}

/// The squares (residual / sigma)^2 of a row.
struct row_energy {
  double square = 0, count = 0;
  double mean() const { return square / count; }
};
/// The energy of the row of `features` numbers from `first` on, without numbers that cannot be used. common: samples of
/// an error that rows share, each with this output's numbers from `first_common` on. each(n, sigma): for every number
/// that counts. factor: the deviation of a factor of the row (row_factor.hpp).
template <class Each>
row_energy energy_of_row(std::vector<double> const& got, std::vector<bounded_number> const& wanted, std::size_t first,
                         index_t features, double accumulation, std::vector<std::vector<double>> const& common,
                         std::size_t first_common, Each const& each, double factor = 0) {
  auto const sigma_at = [&](std::size_t at) {
    double shared = 0;
    for (auto const& sample : common) shared += sample[first_common + at] * sample[first_common + at];
    double const alone = sigma_of(wanted[at], accumulation);
    return common.empty() ? alone : std::sqrt(alone * alone + shared / double(common.size()));
  };
  std::size_t const last = first + std::size_t(features);
  // Where an element is nearly 0 by accident, its own rounding is too small a measure: the row's other elements count.
  double floor = 0;
  for (std::size_t n = first; n < last; ++n) floor = std::fmax(floor, 1e-3 * sigma_at(n));
  row_energy to;
  factor_fit fit;
  for (std::size_t n = first; n < last; ++n) {
    bounded_number const& x = wanted[n];
    if (!std::isfinite(got[n]) || !std::isfinite(x.value) || !std::isfinite(x.bound)) continue;
    double const sigma = std::fmax(sigma_at(n), floor), r = got[n] - x.value;
    if (!(sigma > 0)) continue;
    to.square += r * r / (sigma * sigma);
    to.count += 1;
    fit.add(r / sigma, x.value / sigma);
    each(n, sigma);
  }
  to.square = std::fmax(0, to.square - fit.explained(factor));
  return to;
}
/// Without common errors.
inline row_energy energy_of_row(std::vector<double> const& got, std::vector<bounded_number> const& wanted,
                                std::size_t first, index_t features, double accumulation, double factor = 0) {
  return energy_of_row(got, wanted, first, features, accumulation, {}, 0, [](std::size_t, double) {}, factor);
}

/// The energies of one output, (batch, head, position, feature).
class energies {
 public:
  /// `gate`: standard deviations; more where so many rows and regions are tested that chance alone would exceed it.
  energies(std::string output, regions const& all, double gate, shape const& e)
      : output_(std::move(output)), all_(all), extents_(e), tests_(double(all.count() + e.batch * e.head * e.position)),
        gate_(std::fmax(gate, std::sqrt(2 * std::log(tests_ / most_false_alarms)))), sum_(std::size_t(all.count()), 0),
        rows_(sum_) {}

  /// Adds all rows: for each, the mean of (residual / sigma)^2. Rows without usable elements are left out.
  /// common: samples of an error that rows share, each with this output's numbers from `first` on.
  void add(int tensor, std::vector<double> const& got, std::vector<bounded_number> const& wanted, double accumulation,
           std::vector<std::vector<double>> const& common = {}, std::size_t first = 0,
           row_factors const& factors = {}) {
    shape const& e = extents_;
    tensor_ = tensor;
    got_ = &got, wanted_ = &wanted, accumulation_ = accumulation;
    of_row_.assign(std::size_t(e.batch * e.head * e.position), 0);
    std::vector<int> ids;
    shared_.resize(common.size(), std::vector<double>(sum_.size(), 0));
    std::vector<double> of_row(common.size());
    for (index_t row = 0; row < e.batch * e.head * e.position; ++row) {
      std::fill(of_row.begin(), of_row.end(), 0);
      auto const each = [&](std::size_t n, double sigma) {
        for (std::size_t k = 0; k < common.size(); ++k)
          of_row[k] += common[k][first + n] * common[k][first + n] / (sigma * sigma);
      };
      row_energy const x = energy_of_row(got, wanted, std::size_t(row * e.feature), e.feature, accumulation, common,
                                         first, each, factors.deviation(row));
      if (x.count == 0 || is_dead(row)) continue;
      of_row_[std::size_t(row)] = float(x.mean());
      ids.clear();
      all_.of(tensor, row / (e.position * e.head), row / e.position % e.head, row % e.position, ids);
      for (int id : ids) {
        sum_[std::size_t(id)] += x.mean();
        rows_[std::size_t(id)] += 1;
        for (std::size_t k = 0; k < of_row.size(); ++k) shared_[k][std::size_t(id)] += of_row[k] / x.count;
      }
      if (x.mean() > largest_square_sum(1, gate_)) ++high_rows_;
      highest_ = std::fmax(highest_, x.mean());
    }
  }
  /// The excess over the limits: the region that holds most of it in the fewest rows. `found` is false if there is
  /// none.
  energy_excess excess() const {
    energy_excess to;
    to.output = output_;
    double best = 0;
    double const all_rows = rows_.empty() ? 0 : rows_[0];
    for (int k = 0; k < regions::kinds; ++k) {
      std::vector<int> members;
      double over = 0, rows = 0, square = 0, limit = 0;
      for (int id = 0; id < all_.count(); ++id) {
        std::size_t const n = std::size_t(id);
        if (all_.at(id).by != regions::kind(k) || rows_[n] == 0) continue;
        to.used = std::fmax(to.used, std::sqrt(sum_[n] / limit_of(n)));
        if (!(sum_[n] > limit_of(n))) continue;
        members.push_back(id);
        over += sum_[n] - rows_[n];
        rows += rows_[n];
        square += sum_[n];
        limit += limit_of(n);
      }
      if (members.empty()) continue;
      // Few rows explain more than many, and one region more than several.
      double const merit = over * (1 + 0.5 * (1 - rows / all_rows)) / (1 + 0.01 * double(members.size()));
      if (to.found && !(merit > 1.02 * best)) continue;
      best = merit;
      to.found = true;
      to.parts = members;
      to.where = rows == all_rows ? "" : all_.words(members);
      to.times = std::sqrt(square / rows);
      to.limit = std::sqrt(limit / rows);
    }
    if (!to.found && high_rows_ > 0) {
      to.found = true;
      to.where = "in " + std::to_string(high_rows_) + (high_rows_ == 1 ? " row" : " rows");
      to.times = std::sqrt(highest_);
      to.limit = std::sqrt(largest_square_sum(1, gate_));
    }
    to.used = std::fmax(to.used, std::sqrt(highest_ / largest_square_sum(1, gate_)));
    to.maps = maps();
    if (!rows_.empty() && rows_[0] > 0) to.overall = std::sqrt(sum_[0] / rows_[0]);
    to.of_keys = all_.is_of_keys(tensor_);
    to.over.assign(sum_.size(), 0);
    for (std::size_t n = 0; n < sum_.size(); ++n)
      if (rows_[n] > 0 && sum_[n] > limit_of(n)) to.over[n] = sum_[n] - rows_[n];
    if (to.found) to.box = wrong_box();
    return to;
  }
  /// The share of correct kernels that exceed a limit, at most.
  double false_alarms() const { return tests_ * std::erfc(gate_ / std::sqrt(2.)); }

 private:
  std::vector<energy_map> maps() const {
    std::vector<energy_map> all;
    for (auto const by : {regions::kind::batch, regions::kind::head, regions::kind::block}) {
      energy_map m;
      for (int id = 0; id < all_.count(); ++id) {
        std::size_t const n = std::size_t(id);
        if (all_.at(id).by != by || all_.at(id).tensor != tensor_) continue;
        m.by = all_.kind_in_words(id);
        m.times.push_back(rows_[n] > 0 ? std::sqrt(sum_[n] / rows_[n]) : std::numeric_limits<double>::quiet_NaN());
      }
      if (m.times.size() > 1) all.push_back(std::move(m));
    }
    return all;
  }
  /// Whether all numbers of a row are 0, and one of them should not be. Such rows are left out: they have a name.
  bool is_dead(index_t row) const {
    std::size_t const first = std::size_t(row * extents_.feature), last = first + std::size_t(extents_.feature);
    bool wrong = false;
    for (std::size_t n = first; n < last; ++n) {
      if ((*got_)[n] != 0) return false;
      wrong = wrong || std::fabs((*wanted_)[n].value) > (*wanted_)[n].bound;
    }
    return wrong;
  }
  /// The smallest part that holds nearly all that is too large.
  index_box wrong_box() const {
    shape const& e = extents_;
    index_box box(e);
    for (auto* x : {&box.batch, &box.head, &box.position, &box.feature}) x->assign(x->size(), true);
    double const dependent = shared_.empty() ? 1 : 0.25;  // errors that rows share
    auto const narrow = [&](std::vector<bool>& axis, auto const& index_of) {
      std::vector<index_energy> sums(axis.size());
      for (index_t row = 0; row < index_t(of_row_.size()); ++row) {
        index_t const b = row / (e.position * e.head), h = row / e.position % e.head, i = row % e.position;
        double const x = of_row_[std::size_t(row)];
        if (x > 0 && box.has(b, h, i, 0)) sums[std::size_t(index_of(b, h, i))].add({x, 1, dependent});
      }
      axis = wrong_indices(sums, gate_);
    };
    narrow(box.batch, [](index_t b, index_t, index_t) { return b; });
    narrow(box.head, [](index_t, index_t h, index_t) { return h; });
    narrow(box.position, [](index_t, index_t, index_t i) { return i; });
    std::vector<index_energy> features(box.feature.size());
    for (index_t row = 0; row < index_t(of_row_.size()); ++row) {
      index_t const b = row / (e.position * e.head), h = row / e.position % e.head, i = row % e.position;
      if (!(of_row_[std::size_t(row)] > 0) || !box.has(b, h, i, 0)) continue;
      std::size_t const first = std::size_t(row * e.feature);
      energy_of_row(*got_, *wanted_, first, e.feature, accumulation_, {}, 0, [&](std::size_t n, double sigma) {
        double const r = ((*got_)[n] - (*wanted_)[n].value) / sigma;
        features[n - first].add({r * r, 1, dependent});
      });
    }
    box.feature = wrong_indices(features, gate_);
    return box;
  }

  static constexpr double most_false_alarms = 5e-5;

  /// The largest energy of a region in a correct kernel. Each row counts as one number. An error that rows share varies
  /// more; the samples say by how much.
  double limit_of(std::size_t id) const {
    double mean = 0, square = 0;
    for (auto const& sample : shared_) mean += sample[id] / double(shared_.size());
    for (auto const& sample : shared_) square += (sample[id] - mean) * (sample[id] - mean) / double(shared_.size() - 1);
    double const rows = rows_[id], numbers = 2 * rows * rows / (2 * rows + 1.5 * square);
    return rows * largest_square_sum(numbers, gate_) / numbers;
  }

  std::string output_;
  regions const& all_;
  shape extents_;
  double tests_, gate_, highest_ = 0;
  std::vector<double> sum_, rows_;
  std::vector<std::vector<double>> shared_;  ///< energies of the samples of common errors
  index_t high_rows_ = 0;
  int tensor_ = 0;
  std::vector<double> const* got_ = nullptr;
  std::vector<bounded_number> const* wanted_ = nullptr;
  double accumulation_ = 0;
  std::vector<float> of_row_;  ///< the energy of each row; 0: left out
};

}  // namespace attune::testing::detail
