// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   line::certified{1e-6}    line::nearest{64}    line::half{64}    line::radius{1e-6}
//
// Which keys a row reads, by their place on the line. For line::windowed and line::hybrid, in forward(), vjp() and
// decode().
#pragma once

#include <cmath>

#include <attune/core/error.hpp>
#include <attune/core/tensor.hpp>

namespace attune::line {

/// As many keys as needed to drop at most this share of the row's weight.
/// decode: opens blocks of keys, the block that could hold the most weight first. It stops when the bound on the other
///   blocks, from their counts and nearest keys, is small enough. It then also drops keys whose weight turned out to be
///   negligible.
struct certified {
  double tolerance = 1e-6;  ///< the largest share that may be dropped, in (0, 1)
};

/// The k keys nearest to the query, found with two pointers; at equal distance the lower key. This is the rule in the
/// paper's text; decode() only. The dropped weight is reported, not bounded: for keys drawn from a density, k must grow
/// with n.
struct nearest {
  index_t k = 64;  ///< number of keys, at least 1
};

/// floor(k / 2) keys below the query and k - floor(k / 2) keys from the query on, fewer at an end. This is the rule
/// that the paper prints. For unevenly spaced keys these are not the k nearest keys. Under a mask, the same number for
/// each rectangle of visible pairs. There is no guarantee; the certificate bounds the dropped share.
/// Source: Scalar Sort, "Training complexity": truncated local windows in key order.
struct half {
  index_t k = 64;  ///< number of keys, at least 1
};

/// All keys at a distance of at most sqrt(-tau log eps), where e^(-d^2 / tau) = eps. This is a threshold for single
/// weights before normalization. It bounds no error, because the nearest key may lie beyond it too. Then the row is
/// empty.
/// Source: Scalar Sort, "Training complexity": radius-limited attention.
struct radius {
  double eps = 1e-6;  ///< the threshold, in (0, 1)
};

/// The radius of `radius`: the distance at which a weight before normalization is eps.
inline double radius_of(double tau, double eps) { return std::sqrt(-tau * std::log(eps)); }
/// The expected number of keys within a radius if keys have a constant density (keys per unit of length) near the
/// query.
inline double expected_keys(double radius, double density) { return 2 * radius * density; }
/// The share of weight beyond a distance if keys are spread evenly over the whole line. The paper prints it as a bound
/// for any keys. It is not one (docs/reference/sorted_cache.md).
inline double uniform_tail(double distance, double tau) { return std::erfc(distance / std::sqrt(tau)); }

namespace detail {

inline void check_share(char const* function, char const* name, double share) {
  if (!(share > 0 && share < 1))
    throw error(function, name, attune::detail::text("the value ", share), "a number in (0, 1)");
}
inline void check_count(char const* function, index_t k) {
  if (k < 1) throw error(function, "k", attune::detail::text("the value ", k), "a number of keys >= 1");
}
inline void check_window(char const* function, certified const& w) { check_share(function, "tolerance", w.tolerance); }
inline void check_window(char const* function, radius const& w) { check_share(function, "eps", w.eps); }
inline void check_window(char const* function, nearest const& w) { check_count(function, w.k); }
inline void check_window(char const* function, half const& w) { check_count(function, w.k); }

}  // namespace detail

template <class W>
concept window = requires(W const& w) { detail::check_window("", w); };

}  // namespace attune::line
