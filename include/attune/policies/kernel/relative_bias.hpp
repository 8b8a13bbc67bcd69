// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   s_ij = table[index(i + offset - j)]
#pragma once

#include <array>
#include <cmath>
#include <tuple>

#include <attune/policies/kernel/bound.hpp>

namespace attune::kernel {

/// Formula:  s = values[clamp(i + offset - j, -M, M) + M], 2 M + 1 numbers per head
/// Recovers: no bias at values = 0.
/// Requires: table values (1|B, 1|H, 2 M + 1, 1).
/// Axioms:   shift invariant in positions; constant beyond M.
/// Numerics: exact.
/// Cost:     one read per pair; no Lq x Lk input.
/// Backends: all.
/// Source:   relative position bias (Shaw et al. 2018; Swin), named by Scalar Sort, related work.
/// Example:  docs/reference/operators.md
struct relative_bias {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::gathered;
  table values;  ///< (1|B, 1|H, 2 M + 1, 1): the scores; the middle row belongs to distance 0

  constexpr relative_bias() = default;
  /// With values = v.
  constexpr relative_bias(table v) : values(v) {}
  static constexpr auto parameters() { return std::tuple<>{}; }
  static constexpr auto tables() { return std::array{listed("values", &relative_bias::values, table_width::one)}; }

  void(check)(char const* function) const {
    if (values.rows() % 2 == 0)
      throw error(function, "table values", attune::detail::text(values.rows(), " rows"), "an odd number: 2 M + 1");
  }
  /// The row for a key `distance` = i + offset - j positions before the query, clamped to [-M, M].
  ATTUNE_HD index_t index(index_t distance) const {
    index_t const reach = (values.rows() - 1) / 2;
    return (distance < -reach ? -reach : distance > reach ? reach : distance) + reach;
  }

  template <class T>
  ATTUNE_HD bound_identity<T> bind(row<T> const&) const {
    return {};
  }
};

/// Formula:  s = values[bucket(j - i - offset)]: exact buckets for near keys, logarithmic buckets up to max_distance,
///           one bucket for all farther keys
/// Recovers: no bias at values = 0.
/// Requires: table values (1|B, 1|H, buckets, 1); buckets even if bidirectional; max_distance > buckets / 2.
/// Axioms:   shift invariant in positions.
/// Numerics: the bucket of a distance is computed in double, as in T5; the value is exact. T5 itself uses no 1/sqrt(D).
/// Cost:     one read per pair.
/// Backends: all.
/// Source:   T5 (Raffel et al. 2020, relative_position_bucket), named by Scalar Sort, related work.
/// Example:  docs/reference/operators.md
struct t5_bias {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::gathered;
  table values;               ///< (1|B, 1|H, buckets, 1): the scores
  int max_distance = 128;     ///< from this distance on, all keys share the last bucket
  bool bidirectional = true;  ///< keys after the query have their own half of the buckets

  constexpr t5_bias() = default;
  /// With values = v, max_distance = farthest and bidirectional = both_ways.
  constexpr t5_bias(table v, int farthest = 128, bool both_ways = true)
      : values(v), max_distance(farthest), bidirectional(both_ways) {}
  static constexpr auto parameters() { return std::tuple<>{}; }
  static constexpr auto tables() { return std::array{listed("values", &t5_bias::values, table_width::one)}; }

  void(check)(char const* function) const {
    index_t const buckets = bidirectional ? values.rows() / 2 : values.rows();
    if (bidirectional && values.rows() % 2 != 0)
      throw error(function, "table values", attune::detail::text(values.rows(), " rows"), "an even number of buckets");
    if (max_distance <= buckets / 2)
      throw error(function, "max_distance", attune::detail::text("the value ", max_distance),
                  attune::detail::text("more than ", buckets / 2, ", the number of exact buckets"));
  }
  /// The bucket of a key `distance` = i + offset - j positions before the query.
  ATTUNE_HD_UNCHECKED index_t index(index_t distance) const {
    index_t buckets = values.rows(), base = 0, n = distance;
    if (bidirectional) {
      buckets /= 2;
      base = distance < 0 ? buckets : 0;
      n = distance < 0 ? -distance : distance;
    } else if (n < 0) {
      n = 0;
    }
    index_t const exact = buckets / 2;
    if (n < exact || exact < 1) return base + (n < buckets ? n : buckets - 1);
    double const octaves = std::log(double(n) / double(exact)) / std::log(double(max_distance) / double(exact));
    index_t const logarithmic = exact + index_t(octaves * double(buckets - exact));
    return base + (logarithmic < buckets - 1 ? logarithmic : buckets - 1);
  }

  template <class T>
  ATTUNE_HD bound_identity<T> bind(row<T> const&) const {
    return {};
  }
};

}  // namespace attune::kernel
