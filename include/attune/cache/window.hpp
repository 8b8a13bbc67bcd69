// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   cache::certified{1e-6}    cache::nearest{64}    cache::half{64}    cache::radius{1e-6}
//
// Which keys of a sorted cache a row reads.
#pragma once

#include <cmath>

#include <attune/cache/ordered_keys.hpp>
#include <attune/core/error.hpp>

namespace attune::cache {

/// Whatever it takes to leave out at most the part `eps` of the row's weight. Blocks of keys are opened, the one that
/// could hold most weight first, until what the others could hold, by their counts and their nearest keys, is small
/// enough; keys whose weight turns out to be negligible are then left out as well.
struct certified {
  double eps = 1e-6;
};

/// The k keys nearest to the query, found by two pointers; at equal distance the lower one. What the paper's text asks
/// for. The weight left out is reported, not bounded: with keys drawn from a density, k must grow with n.
struct nearest {
  index_t k = 64;
};

/// floor(k / 2) keys below the query and k - floor(k / 2) others from it on, fewer at an end. What the paper prints:
/// not the k nearest keys where they lie unevenly.
struct half {
  index_t k = 64;
};

/// All keys at a distance of at most sqrt(-tau log eps), where e^(-d^2 / tau) = eps. A threshold for single weights
/// that are not
/// normalized: it bounds no error, for the best key may lie beyond it too. Then the row is empty.
struct radius {
  double eps = 1e-6;
};

/// The radius of `radius`: the distance at which a weight, before normalization, is eps.
inline double radius_of(double tau, double eps) { return std::sqrt(-tau * std::log(eps)); }
/// The keys that a radius is expected to reach where keys have a constant density (keys per unit of length) around the
/// query.
inline double expected_keys(double radius, double density) { return 2 * radius * density; }
/// The weight beyond a distance if keys are spread evenly over all numbers. The paper prints it as a bound for any
/// keys: for these it is none (docs/sorted_cache.md).
inline double uniform_tail(double distance, double tau) { return std::erfc(distance / std::sqrt(tau)); }

namespace detail {

inline void check_window(certified const& w) {
  if (!(w.eps > 0 && w.eps < 1))
    throw error("decode", "eps", attune::detail::text("the value ", w.eps), "a number in (0, 1)");
}
inline void check_window(radius const& w) {
  if (!(w.eps > 0 && w.eps < 1))
    throw error("decode", "eps", attune::detail::text("the value ", w.eps), "a number in (0, 1)");
}
inline void check_k(index_t k) {
  if (k < 1) throw error("decode", "k", attune::detail::text("the value ", k), "a number of keys >= 1");
}
inline void check_window(nearest const& w) { check_k(w.k); }
inline void check_window(half const& w) { check_k(w.k); }

}  // namespace detail
}  // namespace attune::cache
