// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   sorted::hybrid{tau, tolerance}     sorted::truncated{tau, keys}     sorted::limited_radius{tau, eps}
//
// The operators by windows in key order: what they promise, what they take and give.
#pragma once

#include <attune/sorted/problem.hpp>

namespace attune::sorted {

/// Softmax attention with kernel::dot_product + kernel::scalar_sort, or with the latter alone where no vectors are
/// given; forward and gradients, float and double.
/// tolerance: what windows may leave out of any row, as a share of its mass. What they left out at most comes back,
/// with the rounding.
/// tau, scale: shared, per head or per query; scale is 1 / sqrt(D) where it was not set.
/// sees: full, causal, windows, documents. A key that a query does not see is never read into it; a visible one beyond
///   its window neither, whatever it holds.
/// Extremes: tau -> 0: the nearest key, ties share; tau -> inf: nothing is left out. Vectors that are not finite leave
///   nothing out of the rows they touch, which are NaN then, as everywhere.
/// Cost: O(n log n) to sort, and per row its window times (D + Dv), in each of O(log n) rectangles of visible pairs;
///   with short windows near_keys / 2 keys besides that are near by position. At worst (tau -> inf) that of the dense
///   operator and of copying its inputs O(log n) times. Memory: 8 (Dv + 2) bytes per query, 30 bytes per query and key
///   in each of the O(log n) levels.
/// Determinism: bitwise the same for any number of threads.
/// Source: Scalar Sort, "Hybrid", with the bound of docs/sorted.md in the place of the paper's radius.
struct hybrid {
  parameter tau = 1;
  double tolerance = 1e-6;
  visibility sees{};
  parameter scale{};
};

/// The paper's truncated windows: the `keys` nearest in rank, half of them on each side. Under other visibilities than
/// full as many of each rectangle of visible pairs. Nothing is promised; the certificate says what was left out at
/// most.
/// Source: Scalar Sort, "Training complexity": truncated local windows in key order.
struct truncated {
  parameter tau = 1;
  index_t keys = 64;
  visibility sees{};
  parameter scale{};
};

/// The paper's radius sqrt(-tau log eps), for single weights before normalization: it bounds no error, and may hold no
/// key at all.
/// Source: Scalar Sort, "Training complexity": radius-limited attention.
struct limited_radius {
  parameter tau = 1;
  double eps = 1e-6;
  visibility sees{};
  parameter scale{};
};

/// Vectors and a sink are optional. The sink is a token that every query sees, at sort key sink_k, with a zero vector
/// key and the value
/// sink_v: "a learned scalar sink token". It is appended here, since no search finds it by itself.
template <class T>
struct hybrid_arrays {
  tensor<T const> sort_q{}, sort_k{}, v{};  ///< as `arrays`
  tensor<T const> q{}, k{};                 ///< (B, H, Lq, D)  (B, H'', Lk, D)
  tensor<T const> sink_k{}, sink_v{};       ///< (1, 1 or H, 1, 1)  (1, 1 or H, 1, Dv); no sink_v: zeros
};
template <class T>
struct hybrid_results {
  tensor<T> out{}, lse{};
  tensor<double> discarded{};  ///< (B, H, Lq, 1): the share of each row that windows left out, at most
};
/// Gradients are written, not added. What is absent is not written. tau, scale: (1 or B, 1 or H, 1 or Lq, 1).
template <class T>
struct hybrid_gradients {
  tensor<T> sort_q{}, sort_k{}, v{}, q{}, k{}, tau{}, scale{}, sink_k{}, sink_v{};
};

/// The worst row of a call.
struct hybrid_certificate {
  double discarded = 0;             ///< weight of the keys that windows left out, at most
  double rounded = 0;               ///< of the executor's arithmetic, first order, in units of max|v|
  index_t visible = 0, scored = 0;  ///< pairs of all rows

  /// |out - exact| <= output() max|v| in the Euclidean norm, before rounding to the tensor's type.
  double output() const { return 2 * discarded + rounded; }
  /// |lse - exact| <= lse(), likewise.
  double lse() const { return discarded / (1 - discarded) + rounded; }
  void include(hybrid_certificate const& other) {
    discarded = (std::max)(discarded, other.discarded);
    rounded = (std::max)(rounded, other.rounded);
    visible += other.visible;
    scored += other.scored;
  }
};

}  // namespace attune::sorted
