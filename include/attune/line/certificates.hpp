// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   out = exact out, up to an error of at most certificate.output() max|v|
//
// The reports of a call of an operator on a line about dropped weight and rounding.
#pragma once

#include <algorithm>
#include <limits>

#include <attune/core/tensor.hpp>
#include <attune/exec/gradients.hpp>

namespace attune::line {

/// Bounds on what an approximate call dropped from any row, as shares of the row's mass, and the resulting bounds on
/// the outputs.
struct gaussian_certificate {
  /// Keys outside the windows: (n_L e^(-d_L^2/tau) + n_R e^(-d_R^2/tau)) / Z, counts and nearest distances.
  double discarded = 0;
  double truncated = 0;  ///< terms of the series, or waves, after the last one used
  double rounded = 0;    ///< first-order bound on the rounding of the sums
  index_t boxes = 0,     ///< runs or tiles of queries
      expanded = 0;      ///< how many of them used series or waves instead of single pairs

  /// Bound on the total error of a row, as a share of its mass: dropped, truncated and rounded.
  double share() const { return discarded + truncated + rounded; }
  /// |out - exact| <= output() max|v|, before rounding to the tensor's type: the weights move by at most 2 share / (1 -
  /// share) in sum.
  double output() const { return 2 * lse(); }
  /// |lse - exact| <= lse(), before rounding to the tensor's type. Infinite if there is no bound.
  double lse() const { return share() < 1 ? share() / (1 - share()) : std::numeric_limits<double>::infinity(); }
  /// Makes this the certificate of both calls: the larger of each bound, the sum of each count.
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
  double discarded = 0;  ///< bound on the weight of the keys that windows dropped
  double rounded = 0;    ///< of the executor's arithmetic, to first order, in units of max|v|
  index_t visible = 0,   ///< number of visible pairs, over all rows
      scored = 0;        ///< number of pairs whose score was computed

  /// |out - exact| <= output() max|v| in the Euclidean norm, before rounding to the tensor's type.
  double output() const { return 2 * discarded + rounded; }
  /// |lse - exact| <= lse(), before rounding to the tensor's type.
  double lse() const { return discarded / (1 - discarded) + rounded; }
  /// Makes this the certificate of both calls: the larger of each bound, the sum of each count.
  void include(window_certificate const& other) {
    discarded = (std::max)(discarded, other.discarded);
    rounded = (std::max)(rounded, other.rounded);
    visible += other.visible;
    scored += other.scored;
  }
};

/// The report of a call of line::fourier_features or line::nystroem.
struct low_rank_report {
  /// Rows whose mass is not positive. They have no weights: out = 0, lse = -inf, gradients 0.
  index_t rows_without_mass = 0;
  /// Adds the counts of another call.
  void include(low_rank_report const& other) { rows_without_mass += other.rows_without_mass; }
};

/// The gradients of an operator that drops weight, exact for the weights that it kept.
template <class T, class Certificate>
struct certified_gradients : dense_gradients<T> {
  Certificate certificate;  ///< about the weights that the gradients belong to
};

/// The report of one decoded row.
struct row_report {
  index_t insertion = 0;  ///< the number of keys below the query
  /// The window's ranks [lower, upper). certified: from the first scored key to the last; blocks between them may not
  /// have been scored.
  index_t lower = 0,
          upper = 0;     ///< see `lower`
  index_t scored = 0;    ///< keys whose score was computed
  index_t summed = 0;    ///< keys whose value was read
  double discarded = 0;  ///< bound on the part of the row's weight that is missing
  /// The same bound from the counts and the nearest keys of the two ends alone, a corrected form of the paper's claim:
  /// T = e^B (n_L e^(-d_L^2 / tau) + n_R e^(-d_R^2 / tau)), B = c |q| max|k|. For fixed windows; certified: as
  /// `discarded`.
  double discarded_by_ends = 0;
  double rounding = 0;      ///< of the result, in units of the largest |v|
  double output_error = 0;  ///< bound on |out - exact|, Euclidean norm: (2 discarded + rounding) max|v|
  double lse = -std::numeric_limits<double>::infinity();  ///< over the keys that were kept
};

}  // namespace attune::line
