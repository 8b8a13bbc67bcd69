// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   sorted::laplacian{tau}      sorted::sliced_relu{divisor::one}      sorted::gaussian{tau, 1e-6}
//
// The operators on a line of keys, whatever runs them: threads of the CPU (sorted/{laplacian,sliced_relu,gaussian}.hpp)
// or Thrust (sorted/thrust/).
#pragma once

#include <attune/core/parameter.hpp>
#include <attune/policies/concepts.hpp>
#include <attune/sorted/visibility.hpp>

namespace attune::sorted {

/// Softmax attention with kernel::scalar_laplacian, exact up to rounding.
/// tau: shared or per head; a value per query is refused in words.
/// Rounding: sums run in double for float tensors. With u the unit roundoff of the sums, n = Lk and d_i the distance of
///   a query to its nearest key, |out - exact| <= u (8 n + 6 d_i / tau + 12 log(n + 1) + 64) max|v|, and one rounding
///   to the tensor's type. The term d_i / tau is the rounding of the scores, which the dense operator has too.
/// NaN or infinite values reach every query that sees them, whatever their weight. NaN and infinite scalars throw.
/// Cost: full: two sorts and two scans, O(n log n + n Dv). Causal, windows, documents: O(n^(4/3) Dv) in blocks and
///   cells, with a small constant, for float and double, from 512 keys to 4 million, on a line of at most 300 tau; else
///   O(n log n Dv) by levels of rectangles. VJP: by levels. Memory: per thread a row of sums per query, 8 (Dv + 2)
///   bytes each for float and double; by cells, 200 bytes per position and rows of Dv doubles for 64 blocks of queries
///   and twice for each cell.
struct laplacian {
  parameter tau = 1;
  visibility sees{};
};

/// Sliced ReLU attention: kernel::scalar_difference with normalizer::relu (divisor::one), mean_relu (count) or
/// normalized_relu (sum).
/// Rounding: sums run in double for float tensors; with their unit roundoff u and n = Lk, feature by feature, |out -
///   exact| <= 4 (n + 8) u sum_j w_ij |v_j|, and one rounding to the tensor's type: no scalar is too far from 0. lse
///   exists with divisor::sum only. NaN or infinite values reach queries that see them, those on their right for
///   certain.
/// Cost: full: two sorts and one scan, O(n log n + n Dv); otherwise as `laplacian`, on a line of any length. Memory: as
///       `laplacian`.
/// Source: Sliced ReLU Attention, named by Scalar Sort, related work.
struct sliced_relu {
  divisor divided_by = divisor::one;
  visibility sees{};
};

/// Softmax attention with kernel::scalar_sort, float and double.
/// tolerance: what windows and series may leave out of any row, as a share of its mass. What they did leave out, with
///   the rounding of the sums, comes back as the certificate of the call; a tolerance below 1e-12, about that rounding,
///   is refused.
/// tau: shared or per head; a value per query is refused in words (sorted::hybrid takes it).
/// Extremes: tau -> 0: the nearest key, ties share; tau -> inf: one box, two terms, uniform weights. No NaN from finite
///   inputs as long as (q - k)^2 / tau is finite in double for the nearest key.
/// NaN or infinite values reach every query that sees them and whose window holds them, and no query that does not see
/// them.
/// Cost: n log n for sorting, then O(n p Dv) with p <= 40 terms (about 11 at 1e-6), and p^2 Dv for each pair of a run
///   of queries and a run of keys in its window; windows, documents, and the VJP: the same in each of O(log n) levels.
///   At worst O(n window Dv), where queries are fewer than about p per sqrt(tau). Causal forward: O(n w Dv) by waves, w
///   of about 3 (line / sqrt(tau) + 5) at 1e-6, up to 513 and an eighth of the keys, for tolerances from 1e-10; else by
///   levels. Memory: per thread 8 (Dv + 2) bytes per query and key.
/// Source: Greengard and Strain, "The Fast Gauss Transform", 1991; the certificate is ours.
struct gaussian {
  parameter tau = 1;
  double tolerance = 1e-6;
  visibility sees{};
};

}  // namespace attune::sorted
