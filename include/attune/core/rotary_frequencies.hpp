// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   plain:   w_r = theta^(-2 r / d),   r = 0 .. d/2 - 1        d features are turned, in d/2 pairs
//   linear:  w_r / s        ntk:  plain with theta s^(d / (d - 2))        yarn:  between w_r / s and w_r
//
// The angular frequencies of rotary position embeddings, in radians per position, and how they are scaled for contexts
// longer than the training length.
#pragma once

#include <cmath>
#include <vector>

#include <attune/core/error.hpp>
#include <attune/core/tensor.hpp>

namespace attune {

/// The angular frequencies of the pairs of a rotary embedding. Fill it yourself, or call one of the functions below.
/// Frequencies are computed in double.
struct rotary_frequencies {
  std::vector<double> values;   ///< radians per position, one for each pair
  std::vector<index_t> axes;    ///< the axis of positions that turns each pair; empty: axis 0 turns all
  double attention_factor = 1;  ///< multiplies cosines and sines, of queries and of keys; 1 except for yarn

  /// theta^(-2 r / features) for r = 0 .. features/2 - 1 (RoFormer, Su et al. 2021). `features` is the even number of
  /// features that are turned.
  static rotary_frequencies plain(index_t features, double theta = 10000) {
    demand("plain", features, theta);
    rotary_frequencies f;
    for (index_t r = 0; r < features / 2; ++r) f.values.push_back(std::pow(theta, -2.0 * double(r) / double(features)));
    return f;
  }
  /// The same, divided by `scale` (position interpolation, Chen et al. 2023). scale = context / training length.
  static rotary_frequencies linear(index_t features, double scale, double theta = 10000) {
    require_scale("linear", scale);
    rotary_frequencies f = plain(features, theta);
    for (double& w : f.values) w /= scale;
    return f;
  }
  /// plain with the base theta scale^(d / (d - 2)), d = features > 2 (NTK-aware scaling). The fastest pair keeps its
  /// frequency. The slowest one gets the frequency of `linear`.
  static rotary_frequencies ntk(index_t features, double scale, double theta = 10000) {
    require_scale("ntk", scale);
    if (features <= 2)
      throw error("rotary_frequencies::ntk", "features", detail::text("the value ", features), "at least 4");
    return plain(features, theta * std::pow(scale, double(features) / double(features - 2)));
  }
  /// YaRN (Peng et al. 2024), as in the authors' code. Pairs that turn more than `fast` times within the training
  /// length keep their frequency. Pairs that turn less than `slow` times get the frequency of `linear`. In between the
  /// share of both changes linearly with the number of the pair.
  /// The attention factor is 0.1 log(scale) + 1 for scale > 1. It multiplies the turned features of queries and of
  /// keys, so it multiplies the score of turned features by its square. length_scale::yarn{scale} multiplies the whole
  /// score by the same square: use one of the two. Set attention_factor = 1 to leave it to the length scale.
  static rotary_frequencies yarn(index_t features, double scale, index_t training_length, double theta = 10000,
                                 double fast = 32, double slow = 1) {
    require_scale("yarn", scale);
    if (training_length < 1)
      throw error("rotary_frequencies::yarn", "training_length", detail::text("the value ", training_length),
                  "at least 1");
    if (!(slow > 0) || !(fast > slow))
      throw error("rotary_frequencies::yarn", "fast and slow", detail::text("the values ", fast, " and ", slow),
                  "fast > slow > 0");
    rotary_frequencies f = plain(features, theta);
    constexpr double turn = 6.283185307179586;
    auto const pair_that_turns = [&](double times) {
      return double(features) * std::log(double(training_length) / (times * turn)) / (2 * std::log(theta));
    };
    double const last = double(features - 1), low = std::fmax(std::floor(pair_that_turns(fast)), 0),
                 high = std::fmin(std::ceil(pair_that_turns(slow)), last), range = high > low ? high - low : 0.001;
    for (std::size_t r = 0; r < f.values.size(); ++r) {
      double const share = std::fmin(std::fmax((double(r) - low) / range, 0), 1);
      f.values[r] = f.values[r] / scale * share + f.values[r] * (1 - share);
    }
    f.attention_factor = scale > 1 ? 0.1 * std::log(scale) + 1 : 1;
    return f;
  }

  /// The same frequencies for each of n axes of positions: the pairs of axis 0, then the pairs of axis 1, and so on.
  /// For images, n = 2, and `features` above is half of the features that are turned.
  rotary_frequencies on_axes(index_t n) const {
    if (n < 1) throw error("rotary_frequencies::on_axes", "n", detail::text("the value ", n), "at least 1");
    rotary_frequencies f;
    f.attention_factor = attention_factor;
    for (index_t axis = 0; axis < n; ++axis)
      for (double const w : values) f.values.push_back(w), f.axes.push_back(axis);
    return f;
  }

 private:
  static void demand(char const* function, index_t features, double theta) {
    if (features < 2 || features % 2 != 0)
      throw error(detail::text("rotary_frequencies::", function), "features", detail::text("the value ", features),
                  "an even number, at least 2");
    if (!(theta > 1) || !std::isfinite(theta))
      throw error(detail::text("rotary_frequencies::", function), "theta", detail::text("the value ", theta),
                  "a finite number above 1");
  }
  static void require_scale(char const* function, double scale) {
    if (!(scale > 0) || !std::isfinite(scale))
      throw error(detail::text("rotary_frequencies::", function), "scale", detail::text("the value ", scale),
                  "a positive number: context length / training length");
  }
};

}  // namespace attune
