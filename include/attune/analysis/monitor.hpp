// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   monitor m(heads);   m.step(readings);   for (warning const& w : m.warnings()) ...
//
// Checks the guidelines of "Limitations of Normalization" while a model runs. Give it a reading per head and step. It
// reports present violations and trends in the wrong direction. Readings come from raw queries, keys and values
// (observe.hpp) or from an operator's statistics.
#pragma once

#include <cmath>
#include <string>

#include <attune/analysis/heads.hpp>
#include <attune/analysis/limits/separability.hpp>
#include <attune/exec/statistics.hpp>

namespace attune::analysis {

/// The measurements of one head in one step. NaN: not measured, and not reported.
struct head_reading {
  double entropy = std::nan("");      ///< of w / sum w over log K: 0 one key, 1 uniform
  double separable = std::nan("");    ///< N_s / N
  double temperature = std::nan("");  ///< T of softmax(l / T), in units in which scores are O(1)
  double sink_share = std::nan("");   ///< mass of no key, or mass of the first token
};

/// The limits of the guidelines. The paper gives 0.7 to 0.8 and 0.1; the rest is our own.
struct guidelines {
  double least_entropy = 0.1,    ///< of head_reading::entropy; below it: entropy collapse
      most_entropy = 0.95,       ///< of head_reading::entropy; above it: weights nearly uniform
      least_separable = 0.7,     ///< of N_s / N
      least_temperature = 0.1,   ///< of head_reading::temperature
      most_sink = 0.5;           ///< of head_reading::sink_share
  double least_coverage = 0.99;  ///< of the selected keys by all heads together, assuming independence
  double change = 0.1;           ///< from the running average: entropy or N_s / N falling, sink share rising
  double momentum = 0.9;         ///< of that average
};

/// The guideline that a warning is about.
enum class guideline { entropy_collapse, entropy_diluted, separability, temperature, sink, coverage };

/// The name of a guideline, for messages: "entropy collapse".
inline std::string to_string(guideline g) {
  switch (g) {
    case guideline::entropy_collapse:
      return "entropy collapse";
    case guideline::entropy_diluted:
      return "weights nearly uniform";
    case guideline::separability:
      return "N_s / N";
    case guideline::temperature:
      return "temperature below the stable range";
    case guideline::sink:
      return "sink share";
    case guideline::coverage:
      break;
  }
  return "coverage of all heads";
}

/// One violation of a guideline, or one trend in the wrong direction.
struct warning {
  guideline what;      ///< the guideline that is violated
  index_t head;        ///< -1 for all heads together
  double value,        ///< the measured value
      limit;           ///< the limit of the guideline; for a trend the running average
  bool trend = false;  ///< the value moved away from its average by more than `change`
};

/// A reading from the statistics of an operator: means over the rows of one head. K: number of visible keys per row (of
/// the longest row).
template <class T>
head_reading reading_of(head_statistics<T> const& s, double keys) {
  head_reading r;
  r.entropy = keys > 1 ? double(s.normalized_entropy) / std::log(keys) : 0.0;
  r.sink_share = std::fmax(double(s.ground_weight), double(s.first_key));
  return r;
}

/// N_s / N of one row: the N largest weights, and the largest open ball without an unselected key.
template <numbers R, class T = number_of<R>>
double separable_share(R const& weights, points<T> const& values, index_t n) {
  std::vector<T> const y = weighted(weights, values);
  auto const s = select(points<T>(y, values.width()), largest(weights, n));
  return double(separable(s, separation_radius(s), ball::open)) / double(n);
}

/// O(heads) memory and time per step. Throws attune::error if the number of readings changes.
class monitor {
 public:
  /// A monitor of a model with `heads` heads in total.
  explicit monitor(index_t heads, guidelines const& limits = {}) : limits_(limits), averages_(std::size_t(heads)) {}

  /// Takes one reading per head, updates the running averages and replaces the warnings.
  void step(std::vector<head_reading> const& readings) {
    detail::require_length("analysis::monitor::step", "readings", count_of(readings), index_t(averages_.size()));
    warnings_.clear();
    double missed = 1;
    bool measured = false;
    for (std::size_t h = 0; h < readings.size(); ++h) {
      head_reading const& r = readings[h];
      auto const at = index_t(h);
      below(guideline::entropy_collapse, at, r.entropy, limits_.least_entropy);
      above(guideline::entropy_diluted, at, r.entropy, limits_.most_entropy);
      below(guideline::separability, at, r.separable, limits_.least_separable);
      below(guideline::temperature, at, r.temperature, limits_.least_temperature);
      above(guideline::sink, at, r.sink_share, limits_.most_sink);
      falling(guideline::entropy_collapse, at, averages_[h].entropy, r.entropy);
      falling(guideline::separability, at, averages_[h].separable, r.separable);
      rising(guideline::sink, at, averages_[h].sink_share, r.sink_share);
      if (std::isfinite(r.separable)) {
        missed *= 1 - r.separable;
        measured = true;
      }
    }
    coverage_ = measured ? 1 - missed : std::nan("");
    below(guideline::coverage, -1, coverage_, limits_.least_coverage);
    ++steps_;
  }

  std::vector<warning> const& warnings() const { return warnings_; }  ///< of the last step
  double coverage() const { return coverage_; }                       ///< 1 - prod (1 - N_s / N); NaN if not measured
  /// The running averages of a head: NaN before the first measurement, and for the temperature, which has none.
  head_reading const& average(index_t head) const { return averages_.at(std::size_t(head)); }
  index_t steps() const { return steps_; }  ///< how many steps were taken

 private:
  void below(guideline g, index_t head, double x, double limit) {
    if (x < limit) warnings_.push_back({g, head, x, limit});
  }
  void above(guideline g, index_t head, double x, double limit) {
    if (x > limit) warnings_.push_back({g, head, x, limit});
  }
  void falling(guideline g, index_t head, double& average, double x) {
    if (average - x > limits_.change) warnings_.push_back({g, head, x, average, true});
    follow(average, x);
  }
  void rising(guideline g, index_t head, double& average, double x) {
    if (x - average > limits_.change) warnings_.push_back({g, head, x, average, true});
    follow(average, x);
  }
  void follow(double& average, double x) const {
    if (!std::isfinite(x)) return;
    average = std::isfinite(average) ? limits_.momentum * average + (1 - limits_.momentum) * x : x;
  }

  guidelines limits_;
  std::vector<head_reading> averages_;
  std::vector<warning> warnings_;
  double coverage_ = std::nan("");
  index_t steps_ = 0;
};

}  // namespace attune::analysis
