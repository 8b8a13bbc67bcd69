// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   line::certified{1e-6}    line::nearest{64}    line::half{64}    line::radius{1e-6}
//
// Which keys a row reads, by where they lie on the line: of line::windowed and line::hybrid, in forward(), vjp() and
// decode().
#pragma once

#include <cmath>

#include <attune/core/error.hpp>
#include <attune/core/tensor.hpp>

namespace attune::line {

/// Whatever it takes to leave out at most this share of the row's weight.
/// decode: blocks of keys are opened, the one that could hold most weight first, until what the others could hold, by
///   their counts and their nearest keys, is small enough; keys whose weight turns out to be negligible are then left
///   out as well.
struct certified {
  double tolerance = 1e-6;
};

/// The k keys nearest to the query, found by two pointers; at equal distance the lower one. What the paper's text asks
/// for; decode() only. The weight left out is reported, not bounded: with keys drawn from a density, k must grow with
/// n.
struct nearest {
  index_t k = 64;
};

/// floor(k / 2) keys below the query and k - floor(k / 2) others from it on, fewer at an end. What the paper prints:
/// not the k nearest keys where they lie unevenly. Under a mask, as many of each rectangle of visible pairs. Nothing is
/// promised; the certificate says what was left out at most.
/// Source: Scalar Sort, "Training complexity": truncated local windows in key order.
struct half {
  index_t k = 64;
};

/// All keys at a distance of at most sqrt(-tau log eps), where e^(-d^2 / tau) = eps. A threshold for single weights
/// that are not normalized: it bounds no error, for the best key may lie beyond it too. Then the row is empty.
/// Source: Scalar Sort, "Training complexity": radius-limited attention.
struct radius {
  double eps = 1e-6;
};

/// The radius of `radius`: the distance at which a weight, before normalization, is eps.
inline double radius_of(double tau, double eps) { return std::sqrt(-tau * std::log(eps)); }
/// The keys that a radius is expected to reach where keys have a constant density (keys per unit of length) around the
/// query.
inline double expected_keys(double radius, double density) { return 2 * radius * density; }
/// The weight beyond a distance if keys are spread evenly over all numbers. The paper prints it as a bound for any
/// keys: for these it is none (docs/reference/sorted_cache.md).
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
