// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   line::windowed{tau, line::certified{1e-6}, mask::causal{}}       softmax_j(-(sort_q_i - sort_k_j)^2 / tau_i)
//   line::hybrid{tau, line::certified{1e-6}, mask::causal{}}         softmax_j(c <q_i, k_j> - the same)
//
// Operators that read only the keys in a window, in key order: guarantees and arguments.
#pragma once

#include <attune/line/operators.hpp>
#include <attune/line/windows.hpp>
#include <attune/policies/kernel/compose.hpp>
#include <attune/policies/kernel/dot_product.hpp>

namespace attune::line {

/// No sink.
struct no_sink {};
/// A token that every query sees. Its sort key is `sort_k` (shared, per head or per batch element), its vector key is
/// zero, and its value is .v0, (1|B, 1|H, 1, Dv). Scalar Sort: "a learned scalar sink token". Every window includes it.
struct sink {
  parameter sort_k;  ///< place of the sink on the line
};

namespace detail {

template <bool HasVectors, bool HasSink>
struct windowed_fields {
  static constexpr bool has_vectors = HasVectors, has_sink = HasSink, has_lse = true;
  static constexpr bool has_ground_weight = false, has_threshold = false;
  static constexpr bool uses(field f) {
    return scalars_and_values::uses(f) || (HasVectors && (f == field::q || f == field::k)) ||
           (HasSink && f == field::v0);
  }
};

template <class Sink>
inline constexpr bool is_sink = std::is_same_v<Sink, sink>;

}  // namespace detail

/// Softmax attention with kernel::scalar_sort over the keys in a window; forward and gradients, float and double, and
/// decode() of a line::sorted_cache.
/// Window: certified (forward's tolerance is at least 1e-12), half or radius; decode() takes nearest too.
/// tau: shared, per batch element, per head or per query; > 0.
/// mask: each query sees one interval of keys, and the ends of the intervals never move back. A key that a query does
///   not see never affects it. A visible key outside the window does not either, whatever it holds. decode() sees all
///   keys of its cache.
/// Extremes: tau -> 0: the nearest key, ties share; tau -> inf: no key is dropped.
/// Cost: O(n log n) to sort, and per row window times Dv, in each of O(log n) rectangles of visible pairs. With short
///   windows, each row also reads near_keys / 2 keys that are near by position. At worst (tau -> inf) the cost of the
///   dense operator and of copying its inputs O(log n) times. Memory: 8 (Dv + 2) bytes per query, 30 bytes per query
///   and key in each of the O(log n) levels.
/// Determinism: bitwise the same for any number of threads.
/// Source: Scalar Sort, "Training complexity", with the bound of docs/reference/line.md instead of the paper's radius.
template <window Window = certified, class Mask = mask::none, class Sink = no_sink>
struct windowed : detail::windowed_fields<false, detail::is_sink<Sink>> {
  parameter tau;  ///< bandwidth
  Window window;  ///< which keys each row reads
  Mask mask;      ///< which keys each query sees
  Sink sink;      ///< no_sink, or line::sink

  /// Bandwidth, window, mask and sink.
  constexpr windowed(parameter bandwidth = 1, Window which = {}, Mask sees = {}, Sink at = {})
      : tau(bandwidth), window(which), mask(sees), sink(at) {}
  /// The same operator over all visible keys, without the sink.
  constexpr auto dense() const { return attention(kernel::scalar_sort{tau}, normalizer::softmax{}, mask); }
};

/// `windowed` with kernel::dot_product + kernel::scalar_sort: reads .q (B, H, Lq, D) and .k (B, H'', Lk, D) too.
/// scale: shared, per batch element, per head or per query; 1 / sqrt(D) if it is not set.
/// Extremes: in rows with a vector that is not finite no key is dropped; these rows are NaN, as in every operator.
/// Cost: as `windowed`, with window times (D + Dv).
/// Source: Scalar Sort, "Hybrid".
template <window Window = certified, class Mask = mask::none, class Sink = no_sink>
struct hybrid : detail::windowed_fields<true, detail::is_sink<Sink>> {
  parameter tau;    ///< bandwidth
  Window window;    ///< which keys each row reads
  Mask mask;        ///< which keys each query sees
  Sink sink;        ///< no_sink, or line::sink
  parameter scale;  ///< factor of <q, k>; unset: 1 / sqrt(D)

  /// Bandwidth, window, mask, sink and scale.
  constexpr hybrid(parameter bandwidth = 1, Window which = {}, Mask sees = {}, Sink at = {}, parameter c = {})
      : tau(bandwidth), window(which), mask(sees), sink(at), scale(c) {}
  /// The same operator over all visible keys, without the sink.
  constexpr auto dense() const {
    return attention(kernel::dot_product{scale} + kernel::scalar_sort{tau}, normalizer::softmax{}, mask);
  }
};

}  // namespace attune::line
