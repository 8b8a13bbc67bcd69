// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Kernels with learned numbers per key, and GATv2: a learned number per feature.
#pragma once

#include <tuple>

#include <attune/policies.hpp>

namespace attune::test {

// [snippet: per_key]
/// <q, k>/sqrt(D) + log b_j: a learned popularity of each key, b_j > 0, in the table `per_key`.
struct popular_dot {
  static constexpr auto role = policy_role::kernel;
  using contractions = contraction::list<contraction::dot, contraction::per_key>;
  table per_key;
  static constexpr auto parameters() { return std::tuple<>{}; }
  static constexpr auto tables() { return std::array{listed("per_key", &popular_dot::per_key, table_width::one)}; }
  template <class T>
  struct bound {
    T scale;
    ATTUNE_HD T score(T const& product, T const& b, key<T> const&) const { return scale * product + math::log(b); }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r.inverse_sqrt_width};
  }
};
// [/snippet]

/// sum_d tanh(q_d) p_jd + p_j0: two tables with a row for each key, one of them with D columns.
struct learned_keys {
  struct bent : contraction::sum_of<contraction::of_query<field::q>, contraction::by_key<contraction::tables::values>> {
    template <class S>
    ATTUNE_HD static S term(S const& q, S const& p, S const&, S const&) {
      return math::tanh(q) * p;
    }
  };
  static constexpr auto role = policy_role::kernel;
  using contractions = contraction::list<bent, contraction::per_key>;
  table values, per_key;
  static constexpr auto parameters() { return std::tuple<>{}; }
  static constexpr auto tables() {
    return std::tuple{listed("values", &learned_keys::values, table_width::query),
                      listed("per_key", &learned_keys::per_key, table_width::one)};
  }
  template <class T>
  struct bound {
    ATTUNE_HD T score(T const& x, T const& y, key<T> const&) const { return x + y; }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const&) const {
    return {};
  }
};

// [snippet: gatv2]
/// GATv2 (Brody et al. 2022): sum_d a_d leaky_relu(q_d + k_d), with the learned a in the table `metric`.
struct gatv2 {
  struct leaky_sum : contraction::sum_of<contraction::of_query<field::q>, contraction::of_key<field::k>,
                                         contraction::by_feature<contraction::tables::metric>> {
    template <class S>
    ATTUNE_HD static S term(S const& q, S const& k, S const& a, S const&) {
      S const x = q + k;
      return a * math::larger(x, S(lift<S>::constant(0.2) * x));
    }
  };
  static constexpr auto role = policy_role::kernel;
  using contraction = leaky_sum;
  table metric;
  static constexpr auto parameters() { return std::tuple<>{}; }
  static constexpr auto tables() { return std::array{listed("metric", &gatv2::metric, table_width::query_row)}; }
  template <class T>
  struct bound {
    ATTUNE_HD T score(T const& x, key<T> const&) const { return x; }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const&) const {
    return {};
  }
};
// [/snippet]

}  // namespace attune::test
