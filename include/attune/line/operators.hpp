// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   line::laplacian{tau, mask::causal{}}     line::sliced_relu{normalizer::relu{}}     line::gaussian{tau, 1e-6}
//
// Operators whose keys are numbers on a line, with algorithms that do not visit all pairs. You call them like every
// other operator, on cpu{}: forward(cpu{}, op, inputs, outputs), vjp(cpu{}, op, inputs, cotangents). `op.dense()` is
// the same operator as an attention() operator, for every other call and executor.
#pragma once

#include <attune/operators/attention.hpp>
#include <attune/policies/kernel/scalar.hpp>
#include <attune/policies/mask/none.hpp>
#include <attune/policies/normalizer/generic.hpp>
#include <attune/policies/normalizer/softmax.hpp>

namespace attune::line {

namespace detail {

/// The inputs of an operator on a line: .sort_q (B, H, Lq, 1), .sort_k (B, H', Lk, 1), .v (B, Hv, Lk, Dv).
struct scalars_and_values {
  static constexpr bool uses(field f) { return f == field::sort_q || f == field::sort_k || f == field::v; }
  static constexpr bool has_ground_weight = false, has_threshold = false;
};

}  // namespace detail

/// Softmax attention with kernel::scalar_laplacian, exact up to rounding.
/// tau: shared, per batch element or per head; > 0. A value per query is an error with a readable message.
/// mask: each query sees one interval of keys, and the ends of the intervals never move back (causal, windows,
///   documents in order).
/// Rounding: sums run in double for float tensors. Let u be the unit roundoff of the sums, n = Lk and d_i the distance
///   from a query to its nearest key. Then |out - exact| <= u (8 n + 6 d_i / tau + 12 log(n + 1) + 64) max|v|, and one
///   rounding to the tensor's type. The term d_i / tau is the rounding of the scores, which the dense operator has too.
/// NaN or infinite values reach every query that sees them, whatever their weight. NaN and infinite scalars throw.
/// Cost: full: two sorts and two scans, O(n log n + n Dv). Causal, windows, documents: O(n^(4/3) Dv) in blocks and
///   cells, with a small constant, for float and double, from 512 keys to 4 million, on a line of at most 300 tau; else
///   O(n log n Dv) by levels of rectangles. VJP: by levels. Memory: per thread, a row of sums per query, 8 (Dv + 2)
///   bytes each for float and double. By cells: 200 bytes per position, and rows of Dv doubles for 64 blocks of queries
///   and two for each cell.
template <class Mask = mask::none>
struct laplacian : detail::scalars_and_values {
  static constexpr bool has_lse = true;  ///< outputs have a log-sum-exp
  parameter tau;                         ///< bandwidth
  Mask mask;                             ///< which keys each query sees

  /// Bandwidth and mask.
  constexpr laplacian(parameter bandwidth = 1, Mask which = {}) : tau(bandwidth), mask(which) {}
  /// The same operator as an attention() operator.
  constexpr auto dense() const { return attention(kernel::scalar_laplacian{tau}, normalizer::softmax{}, mask); }
};

/// Sliced ReLU attention: kernel::scalar_difference with normalizer::relu, mean_relu or normalized_relu.
/// Rounding: sums run in double for float tensors. With their unit roundoff u and n = Lk, for each feature,
///   |out - exact| <= 4 (n + 8) u sum_j w_ij |v_j|, and one rounding to the tensor's type. Scalars may be arbitrarily
///   far from 0. lse exists with normalized_relu only. NaN or infinite values may reach any query that sees them, and
///   do reach those to their right.
/// Cost: full: two sorts and one scan, O(n log n + n Dv); otherwise as `laplacian`, on a line of any length. Memory: as
///       `laplacian`.
/// Source: Sliced ReLU Attention, named by Scalar Sort, related work.
template <class Normalizer = normalizer::relu, class Mask = mask::none>
struct sliced_relu : detail::scalars_and_values {
  static_assert(std::is_same_v<Normalizer, normalizer::relu> || std::is_same_v<Normalizer, normalizer::mean_relu> ||
                    std::is_same_v<Normalizer, normalizer::normalized_relu>,
                "attune: line::sliced_relu takes normalizer::relu, mean_relu or normalized_relu");
  static constexpr bool has_lse = Normalizer::traits.divided_by == divisor::sum;  ///< with normalized_relu only
  Mask mask;                                                                      ///< which keys each query sees

  /// Normalizer and mask.
  constexpr sliced_relu(Normalizer = {}, Mask which = {}) : mask(which) {}
  /// The same operator as an attention() operator.
  constexpr auto dense() const { return attention(kernel::scalar_difference{}, Normalizer{}, mask); }
};

/// Softmax attention with kernel::scalar_sort, float and double.
/// tolerance: the largest share of a row's mass that windows and series may drop. The call's certificate bounds the
///   dropped share and the rounding of the sums. A tolerance below 1e-12, about the size of that rounding, is an error.
/// tau, mask: as `laplacian`; line::hybrid takes a tau per query.
/// Extremes: tau -> 0: the nearest key, ties share; tau -> inf: one box, two terms, uniform weights. No NaN from finite
///   inputs as long as (q - k)^2 / tau is finite in double for the nearest key.
/// NaN or infinite values reach every query that sees them and has them in its window, and no query that does not see
/// them.
/// Cost: n log n for sorting, then O(n p Dv) with p <= 40 terms (about 11 at 1e-6), and p^2 Dv for each pair of a run
///   of queries and a run of keys in its window. Windows, documents and the VJP: the same in each of O(log n) levels.
///   At worst O(n window Dv), if there are fewer than about p queries per sqrt(tau). Causal forward: O(n w Dv) by
///   waves, w about 3 (line / sqrt(tau) + 5) at 1e-6, up to 513 and up to an eighth of the keys, for tolerances from
///   1e-10; else by levels. Memory: per thread 8 (Dv + 2) bytes per query and key.
/// Source: Greengard and Strain, "The Fast Gauss Transform", 1991; the certificate is ours.
template <class Mask = mask::none>
struct gaussian : detail::scalars_and_values {
  static constexpr bool has_lse = true;  ///< outputs have a log-sum-exp
  parameter tau;                         ///< bandwidth
  double tolerance;                      ///< the largest share of a row's mass that may be dropped
  Mask mask;                             ///< which keys each query sees

  /// Bandwidth, tolerance and mask.
  constexpr gaussian(parameter bandwidth = 1, double share = 1e-6, Mask which = {})
      : tau(bandwidth), tolerance(share), mask(which) {}
  /// The operator that this one approximates.
  constexpr auto dense() const { return attention(kernel::scalar_sort{tau}, normalizer::softmax{}, mask); }
};

}  // namespace attune::line
