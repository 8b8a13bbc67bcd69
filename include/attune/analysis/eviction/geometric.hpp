// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   keep = { j : k_j in [min recent q - r, max recent q + r]  or  k_j in the sink zone }
//
// Eviction by position: removes the keys that no recent query was near.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include <attune/core/error.hpp>
#include <attune/core/tensor.hpp>

namespace attune::eviction {

/// A closed interval of the line.
template <class T>
struct zone {
  T from,                                                                  ///< the lower end, included
      to;                                                                  ///< the upper end, included
  constexpr bool holds(T const& x) const { return from <= x && x <= to; }  ///< whether x lies in the interval
};

namespace detail {
template <class T>
void require_zone(char const* function, char const* argument, zone<T> const& z) {
  if (!(z.from <= z.to))
    throw error(function, argument, attune::detail::text("the ends ", double(z.from), " and ", double(z.to)),
                "numbers, the smaller one first");
}
template <class T>
void require_numbers(char const* function, char const* argument, std::span<T const> x) {
  for (std::size_t n = 0; n < x.size(); ++n)
    if (!(x[n] == x[n])) throw error(function, argument, attune::detail::text("NaN at ", n), "numbers");
}
}  // namespace detail

/// The interval that recent queries reach: [min - reach, max + reach]. Throws attune::error if there is no query, or if
/// reach is not a number >= 0.
template <class T>
zone<T> reached(std::span<T const> recent_queries, T const& reach) {
  char const* const name = "eviction::reached";
  if (recent_queries.empty()) throw error(name, "recent_queries", "no element", "at least one");
  if (!(reach >= T(0))) throw error(name, "reach", attune::detail::text("the value ", double(reach)), "a number >= 0");
  detail::require_numbers(name, "recent_queries", recent_queries);
  auto const [low, high] = std::minmax_element(recent_queries.begin(), recent_queries.end());
  return {*low - reach, *high + reach};
}

/// Indices of the kept keys, ascending. `sinks` is an interval whose keys are always kept: a place for sink tokens.
/// Guarantees: for the Gaussian kernel with temperature tau, every evicted key has a weight below e^(-reach^2 / tau)
///   before normalization, for every query inside the recent range. Relative to the row, at most n e^((d^2 - reach^2) /
///   tau) is lost in total, where d is the distance from that query to its nearest kept key. There is no guarantee for
///   queries outside the range: the sink zone serves those.
/// In a sorted cache the interval is a slice, found by two searches.
/// Errors:   throws attune::error on NaN, or if ends are in the wrong order.
/// Cost:     O(n).
/// Source:   Scalar Sort, "Geometric eviction" and "Sink zone reservation".
template <class T>
std::vector<index_t> keep_in_range(std::span<T const> keys, zone<T> const& range,
                                   std::type_identity_t<std::optional<zone<T>>> const& sinks = {}) {
  char const* const name = "eviction::keep_in_range";
  detail::require_zone(name, "range", range);
  if (sinks) detail::require_zone(name, "sinks", *sinks);
  detail::require_numbers(name, "keys", keys);
  std::vector<index_t> kept;
  for (std::size_t j = 0; j < keys.size(); ++j)
    if (range.holds(keys[j]) || (sinks && sinks->holds(keys[j]))) kept.push_back(index_t(j));
  return kept;
}

}  // namespace attune::eviction
