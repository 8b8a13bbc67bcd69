// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   out = forward's, off by at most certificate.output() max|v|
//
// What a call of an operator on a line says about what it left out.
#pragma once

#include <algorithm>
#include <limits>

#include <attune/core/tensor.hpp>
#include <attune/exec/gradients.hpp>

namespace attune::line {

/// What an approximate call has left out of any row at most, as a share of the row's mass, and what that makes of the
/// outputs.
struct gaussian_certificate {
  /// Keys outside the windows: (n_L e^(-d_L^2/tau) + n_R e^(-d_R^2/tau)) / Z, counts and nearest distances.
  double discarded = 0;
  double truncated = 0;  ///< terms of the series, or waves, after the last one taken
  double rounded = 0;    ///< first-order bound on the rounding of the sums
  /// Runs or tiles of queries, and how many of them took series or waves instead of single pairs.
  index_t boxes = 0, expanded = 0;

  double share() const { return discarded + truncated + rounded; }
  /// |out - exact| <= output() max|v|, before rounding to the tensor's type: weights move by 2 share / (1 - share) in
  /// sum at most.
  double output() const { return 2 * lse(); }
  /// |lse - exact| <= lse(), before rounding to the tensor's type. Infinite where nothing is promised.
  double lse() const { return share() < 1 ? share() / (1 - share()) : std::numeric_limits<double>::infinity(); }
  void include(gaussian_certificate const& other) {
    discarded = (std::max)(discarded, other.discarded);
    truncated = (std::max)(truncated, other.truncated);
    rounded = (std::max)(rounded, other.rounded);
    boxes += other.boxes;
    expanded += other.expanded;
  }
};

/// The worst row of a call of line::windowed or line::hybrid.
struct window_certificate {
  double discarded = 0;             ///< weight of the keys that windows left out, at most
  double rounded = 0;               ///< of the executor's arithmetic, first order, in units of max|v|
  index_t visible = 0, scored = 0;  ///< pairs of all rows

  /// |out - exact| <= output() max|v| in the Euclidean norm, before rounding to the tensor's type.
  double output() const { return 2 * discarded + rounded; }
  /// |lse - exact| <= lse(), likewise.
  double lse() const { return discarded / (1 - discarded) + rounded; }
  void include(window_certificate const& other) {
    discarded = (std::max)(discarded, other.discarded);
    rounded = (std::max)(rounded, other.rounded);
    visible += other.visible;
    scored += other.scored;
  }
};

/// What a call of line::fourier_features or line::nystroem can say about itself.
struct low_rank_report {
  /// Rows whose mass is not positive: no weights exist; out = 0, lse = -inf, gradients 0.
  index_t rows_without_mass = 0;
  void include(low_rank_report const& other) { rows_without_mass += other.rows_without_mass; }
};

/// The gradients of an operator that leaves something out, exact for the weights that it kept.
template <class T, class Certificate>
struct certified_gradients : dense_gradients<T> {
  Certificate certificate;
};

/// What is known of a decoded row.
struct row_report {
  index_t insertion = 0;  ///< the number of keys below the query
  /// The window's ranks [lower, upper); certified: from the first key that was scored to the last, with blocks between
  /// them that may not have been.
  index_t lower = 0, upper = 0;
  index_t scored = 0;    ///< keys whose score was computed
  index_t summed = 0;    ///< keys whose value was read
  double discarded = 0;  ///< the part of the row's weight that is missing, at most
  /// The same from the counts and the nearest keys of the two ends alone, which is the paper's claim put right: T = e^B
  /// (n_L e^(-d_L^2 / tau) + n_R e^(-d_R^2 / tau)), B = c |q| max|k|. For fixed windows; certified: as `discarded`.
  double discarded_by_ends = 0;
  double rounding = 0;      ///< of the result, in units of the largest |v|
  double output_error = 0;  ///< |out - exact| at most, Euclidean norm: (2 discarded + rounding) max|v|
  double lse = -std::numeric_limits<double>::infinity();  ///< of the keys that were kept
};

}  // namespace attune::line
