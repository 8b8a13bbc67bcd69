// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A selection whose weights do not scale with their reference: its gradient goes through the highest logit.
#pragma once

#include <attune/policies.hpp>

namespace attune::test {

/// Weights [1 + (a - reference) / 2]+ of the keys above the highest logit - 2: a selection whose reference moves.
struct tent {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.family = row_family::sparse_support,
                                            .threshold = threshold_rule::selection};

  template <class T>
  struct bound {
    template <class Column>
    ATTUNE_HD candidate_threshold<T> solve(Column& column) const {
      T const off = -math::infinity<T>(), highest = column.highest(), m = math::select(highest == off, T(0), highest);
      column.keep([&](T const& a) { return math::select(a >= m - T(2), T(1), T(0)); });
      return {m, T(0), T(m - T(2)), off};
    }
    ATTUNE_HD T weight(candidate_threshold<T> const& at, T const& a, key<T> const&) const {
      return math::select(a >= at.cut, math::larger(T(T(1) + (a - at.reference) / T(2)), T(0)), T(0));
    }
    ATTUNE_HD T reported(candidate_threshold<T> const& at) const { return at.cut; }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const&) const {
    return {};
  }
};

}  // namespace attune::test
