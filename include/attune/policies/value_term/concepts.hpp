// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   out_i = sum_j w_ij (v_j + t_n),   n = index(i + offset - j)
//
// A value term has a table `vectors` with the rows t, and says which row belongs to a distance. The messages of its
// compile errors are here, too.
#pragma once

#include <concepts>
#include <tuple>

#include <attune/policies/concepts.hpp>
#include <attune/policies/operands.hpp>

namespace attune {

namespace contraction::tables {
/// The vectors that a value term adds: (1|B, 1|H, R, Dv). The policy says which row belongs to a distance.
struct vectors {
  /// The table `vectors` of a policy.
  template <class P>
    requires requires(P const& policy) { policy.vectors; }
  ATTUNE_HD static table const& of(P const& policy) {
    return policy.vectors;
  }
  /// The row for a key `distance` = i + offset - j positions before the query: index(distance) of the policy.
  template <class P>
  ATTUNE_HD static index_t row(P const& p, index_t distance) {
    return p.index(distance);
  }
};
}  // namespace contraction::tables

template <class P>
concept HoldsVectors = requires(P const& p) {
  { p.vectors } -> std::convertible_to<table const&>;
};
namespace detail {
template <class P>
constexpr bool lists_vectors_alone() {
  constexpr auto all = tables_of<P>();
  if constexpr (std::tuple_size_v<decltype(tables_of<P>())> == 1)
    return std::get<0>(all).member == &P::vectors && std::get<0>(all).use == table_use::contraction;
  else
    return false;
}
}  // namespace detail
template <class P>
concept ListsVectors = attune::detail::lists_vectors_alone<P>();
template <class P>
concept IndexesDistances = requires(P const& p, index_t distance) {
  { p.index(distance) } -> std::integral;
};
template <class P>
concept IndexesPairs = requires(P const& p, index_t position, index_t key) { p.index(position, key); };

/// Adds a row of a table to the value of each key: which row depends on the distance of the pair.
template <class P>
concept ValueTermPolicy =
    HasRole<P, policy_role::value_term> && TriviallyCopyable<P> && ListsParameters<P> &&
    std::tuple_size_v<decltype(parameters_of<P>())> == 0 && HoldsVectors<P> && ListsVectors<P> && IndexesDistances<P>;

template <>
struct role_rules<policy_role::value_term> {
  template <class P>
  static constexpr bool complete() {
    static_assert(HoldsVectors<P>,
                  "attune: a value term: give it the member attune::table vectors; its rows are added to values. See "
                  "docs/reference/policies.md#value-terms");
    static_assert(ListsParameters<P>,
                  "attune: a value term has a table and no parameters: write static constexpr auto parameters() { "
                  "return std::tuple<>{}; } See docs/reference/policies.md#value-terms");
    static_assert(!IndexesPairs<P> || IndexesDistances<P>,
                  "attune: a value term: index(position, key) is not supported: the row depends on the distance of "
                  "the pair alone, attune::index_t index(attune::index_t distance) const. See "
                  "docs/reference/policies.md#value-terms");
    static_assert(IndexesDistances<P> || IndexesPairs<P>,
                  "attune: a value term: write attune::index_t index(attune::index_t distance) const, the row of "
                  "vectors for a key distance = i + offset - j positions before the query. See "
                  "docs/reference/policies.md#value-terms");
    if constexpr (HoldsVectors<P> && ListsParameters<P>) {
      static_assert(std::tuple_size_v<decltype(parameters_of<P>())> == 0,
                    "attune: a value term has no parameters: multiply the rows of its table instead. See "
                    "docs/reference/policies.md#value-terms");
      static_assert(ListsVectors<P>,
                    "attune: a value term: list its table, and no other: static constexpr auto tables() { return "
                    "std::array{attune::listed(\"vectors\", &my_policy::vectors, attune::table_width::any)}; } See "
                    "docs/reference/policies.md#value-terms");
      return ValueTermPolicy<P>;
    }
    return false;
  }
};

}  // namespace attune
