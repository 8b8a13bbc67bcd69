// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Kernels that read a row at an index, and contextual position encoding (Golovneva et al. 2024) as loops.
#pragma once

#include <array>
#include <cmath>
#include <vector>

#include <attune/policies.hpp>

namespace attune::test {

/// sigmoid(rate x): the gate of a key.
struct counted_gate {
  template <class Bound, class T>
  ATTUNE_HD static T map(Bound const& bound, T const& x) {
    return math::sigmoid(T(bound.rate * x));
  }
};
/// c <q, k> + z_i at the index p_ij = sum of sigmoid(rate <q, k>) over the keys of Sum.
template <class Sum>
struct cope_of {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::interpolated<Sum>;
  parameter rate = 1, scale = {};
  static constexpr auto parameters() {
    return std::array{listed("rate", &cope_of::rate), listed("scale", &cope_of::scale)};
  }
  template <class T>
  struct bound {
    T rate, c;
    ATTUNE_HD T score(T const& x, T const&, T const& z, key<T> const&) const { return c * x + z; }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r(rate), r(scale, r.inverse_sqrt_width)};
  }
};
/// Contextual position encoding: the sum runs over the keys from j on.
using cope = cope_of<contraction::later_sum_with_own<contraction::dot, counted_gate>>;
using cope_before = cope_of<contraction::earlier_sum<contraction::dot, counted_gate>>;

/// z_i at the index <sort_q_i, .> ... of gates that are given: p_ij = sum of bias_ij' over j' >= j; no other score.
struct as_given {
  template <class T>
  ATTUNE_HD static T map(T const& x) {
    return x;
  }
};
struct row_at_given_index {
  static constexpr auto role = policy_role::kernel;
  using contraction =
      contraction::interpolated<contraction::later_sum_with_own<attune::contraction::given_bias, as_given>>;
  template <class T>
  struct bound {
    ATTUNE_HD T score(T const&, T const&, T const& z, key<T> const&) const { return z; }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const&) const {
    return {};
  }
};

}  // namespace attune::test
