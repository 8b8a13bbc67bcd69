// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Contractions that attune does not have, of operands of every side: no executor has code for them but for their terms.
#pragma once

#include <tuple>

#include <attune/policies.hpp>

namespace attune::test {

namespace own {
struct slopes {
  template <class P>
  ATTUNE_HD static table const& of(P const& p) {
    return p.slopes;
  }
  template <class P>
  ATTUNE_HD static index_t row(P const& p, index_t distance) {
    return distance < 0 ? 0 : distance < p.slopes.rows() ? distance : p.slopes.rows() - 1;
  }
};
struct weights {
  template <class P>
  ATTUNE_HD static table const& of(P const& p) {
    return p.weights;
  }
};
struct decays {
  template <class P>
  ATTUNE_HD static table const& of(P const& p) {
    return p.decays;
  }
};

/// sum_d r_{n,d} tanh(q_d - k_d) / (1 + n^2 / 16)
struct warped : contraction::sum_of<contraction::of_query<field::q>, contraction::of_key<field::k>,
                                    contraction::by_distance<slopes>> {
  template <class S>
  ATTUNE_HD static S term(S const& q, S const& k, S const& r, S const& n) {
    return r * math::tanh(S(q - k)) / (S(1) + n * n * S(0.0625));
  }
};
/// sum_d q_d k_d / (1 + n^2 / 4)
struct fading : contraction::sum_of<contraction::of_query<field::q>, contraction::of_key<field::k>> {
  template <class S>
  ATTUNE_HD static S term(S const& q, S const& k, S const&, S const& n) {
    return q * k / (S(1) + n * n * S(0.25));
  }
};
/// sum_d tanh(q_d + k_d)
struct agreement : contraction::feature_sum {
  template <class S>
  ATTUNE_HD static S term(S const& q, S const& k, S const&, S const&) {
    return math::tanh(S(q + k));
  }
};
/// sum_d bias_ij q_d: a number of the pair before one of each feature
struct scaled_query : contraction::sum_of<contraction::of_pair<field::bias>, contraction::of_query<field::q>> {
  template <class S>
  ATTUNE_HD static S term(S const& bias, S const& q, S const&, S const&) {
    return bias * q;
  }
};
/// sum_d q_d k_d bias_ij
struct weighted_dot : contraction::sum_of<contraction::of_query<field::q>, contraction::of_key<field::k>,
                                          contraction::of_pair<field::bias>> {
  template <class S>
  ATTUNE_HD static S term(S const& q, S const& k, S const& bias, S const&) {
    return q * k * bias;
  }
};
/// bias_ij^2: derived from what reads a number as it is, with a term of its own
struct squared_bias : contraction::plain<contraction::of_pair<field::bias>> {
  template <class S>
  ATTUNE_HD static S term(S const& bias, S const&, S const&, S const&) {
    return bias * bias;
  }
};
/// Left sides that no executor knows.
struct squared_left {
  template <class S>
  ATTUNE_HD static S left(S const& x, S const&) {
    return x * x;
  }
};
struct bent_left {
  template <class S>
  ATTUNE_HD static S left(S const& x, S const& z) {
    return math::tanh(S(x + z));
  }
};
struct squared_dot
    : contraction::product<squared_left, contraction::of_query<field::q>, contraction::of_key<field::k>> {};
struct bent_dot : contraction::product<bent_left, contraction::of_query<field::q>, contraction::of_key<field::k>,
                                       contraction::by_feature<slopes>> {};
/// Products whose tables stand elsewhere than in those of attune.
struct distant_dot : contraction::product<contraction::scaled_left, contraction::of_query<field::q>,
                                          contraction::of_key<field::k>, contraction::by_distance<slopes>> {};
struct weighted_query
    : contraction::product<contraction::plain_left, contraction::of_query<field::q>, contraction::by_feature<slopes>> {
};
/// Inputs of keys alone
struct weighted_key
    : contraction::product<contraction::plain_left, contraction::of_key<field::k>, contraction::by_feature<slopes>> {};

/// bias_ij sort_q_i + w sort_q_i^2
struct weighted_bias : contraction::sum_of<contraction::of_pair<field::bias>, contraction::of_query<field::sort_q>,
                                           contraction::by_feature<weights>> {
  template <class S>
  ATTUNE_HD static S term(S const& bias, S const& x, S const& w, S const&) {
    return bias * x + w * x * x;
  }
};
/// sum_r a_r / (1 + (b_r n)^2)
struct cauchy : contraction::sum_of<contraction::by_term<weights>, contraction::by_term<decays>> {
  template <class S>
  ATTUNE_HD static S term(S const& a, S const& b, S const&, S const& n) {
    S const x = b * n;
    return a / (S(1) + x * x);
  }
};
}  // namespace own

/// The value of a contraction, as a score.
struct bound_value {
  template <class T>
  ATTUNE_HD T score(T const& x, key<T> const&) const {
    return x;
  }
};

template <class Contraction>
struct sloped_kernel {
  static constexpr auto role = policy_role::kernel;
  using contraction = Contraction;
  table slopes;
  static constexpr auto parameters() { return std::tuple<>{}; }
  static constexpr auto tables() { return std::tuple{listed("slopes", &sloped_kernel::slopes, table_width::any)}; }
  template <class T>
  ATTUNE_HD bound_value bind(row<T> const&) const {
    return {};
  }
};
using warped_kernel = sloped_kernel<own::warped>;
template <class Contraction>
struct tableless_kernel {
  static constexpr auto role = policy_role::kernel;
  using contraction = Contraction;
  static constexpr auto parameters() { return std::tuple<>{}; }
  template <class T>
  ATTUNE_HD bound_value bind(row<T> const&) const {
    return {};
  }
};
struct weighted_bias_kernel {
  static constexpr auto role = policy_role::kernel;
  using contraction = own::weighted_bias;
  table weights;
  static constexpr auto parameters() { return std::tuple<>{}; }
  static constexpr auto tables() {
    return std::tuple{listed("weights", &weighted_bias_kernel::weights, table_width::one)};
  }
  template <class T>
  ATTUNE_HD bound_value bind(row<T> const&) const {
    return {};
  }
};
struct cauchy_kernel {
  static constexpr auto role = policy_role::kernel;
  using contraction = own::cauchy;
  table weights, decays;
  static constexpr auto parameters() { return std::tuple<>{}; }
  static constexpr auto tables() {
    return std::tuple{listed("weights", &cauchy_kernel::weights, table_width::one),
                      listed("decays", &cauchy_kernel::decays, table_width::one)};
  }
  template <class T>
  ATTUNE_HD bound_value bind(row<T> const&) const {
    return {};
  }
};

}  // namespace attune::test
