// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   out_i = sum_j w_ij (v_j + t_n),   n = clamp(j - i - offset, -M, M) + M
#pragma once

#include <array>
#include <tuple>

#include <attune/policies/value_term/concepts.hpp>

namespace attune::value_term {

/// Formula:  out_i = sum_j w_ij (v_j + vectors[clamp(j - i - offset, -M, M) + M]), 2 M + 1 vectors per head
/// Recovers: no value term at vectors = 0.
/// Requires: table vectors (1|B, 1|H, 2 M + 1, Dv).
/// Axioms:   shift invariant in positions; constant beyond M. Masses, lse and weights do not change.
/// Numerics: on the CPU the weights of keys with the same row are summed before they multiply it. Values and vectors
///           are two sums there: the gradient by the score of a row's only key is a rounding error, not exactly 0.
/// Cost:     for each block of 64 keys one product with the different rows that it meets: one row beyond M.
/// Backends: all, except tensor cores.
/// Source:   Shaw et al. 2018, "Self-attention with relative position representations" (arXiv 1803.02155): a^V.
/// Example:  docs/reference/policies.md#value-terms
struct relative {
  static constexpr auto role = policy_role::value_term;
  table vectors;  ///< (1|B, 1|H, 2 M + 1, Dv): the middle row belongs to distance 0, the last to keys far ahead

  constexpr relative() = default;
  /// With vectors = rows.
  constexpr relative(table rows) : vectors(rows) {}
  static constexpr auto parameters() { return std::tuple<>{}; }
  static constexpr auto tables() { return std::array{listed("vectors", &relative::vectors, table_width::any)}; }

  void(check)(char const* function) const {
    if (vectors.rows() % 2 == 0)
      throw error(function, "table vectors", attune::detail::text(vectors.rows(), " rows"), "an odd number: 2 M + 1");
  }
  /// The row for a key `distance` = i + offset - j positions before the query, clamped to [-M, M].
  ATTUNE_HD index_t index(index_t distance) const {
    index_t const reach = (vectors.rows() - 1) / 2;
    return reach - (distance < -reach ? -reach : distance > reach ? reach : distance);
  }
};

}  // namespace attune::value_term
