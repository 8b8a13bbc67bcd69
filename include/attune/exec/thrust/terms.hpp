// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   contraction_ij = sum_d term(x_d, y_d, z_d, i + offset - j)
//
// Every contraction of the closed list as a sum over features of a term of up to three operands, each of them a number of the
// query, of the key, of the pair or of a table. Values come from the term, derivatives by an operand from the same term on dual
// numbers: nothing else is known of a contraction here.
#pragma once

#include <attune/core/dual.hpp>
#include <attune/exec/problem.hpp>

namespace attune::exec_thrust {

/// Where an operand lives.
enum class operand_side { none, query, key, pair, table };
/// Which entry of a table a pair of distance i + offset - j reads at feature d.
enum class table_place {
  column,       ///< (0, d): the same for all pairs
  row,          ///< (d, 0): the same for all pairs
  of_distance,  ///< a row for each distance, column d
};

struct no_operand {
  static constexpr operand_side side = operand_side::none;
};
template <field F>
struct query_operand {
  static constexpr operand_side side = operand_side::query;
  static constexpr field of = F;
};
template <field F>
struct key_operand {
  static constexpr operand_side side = operand_side::key;
  static constexpr field of = F;
};
template <field F>
struct pair_operand {
  static constexpr operand_side side = operand_side::pair;
  static constexpr field of = F;
};
/// Table::of(owner) is the table; Table::row(owner, distance) where a row belongs to a distance.
template <class Table, table_place Place>
struct table_operand {
  static constexpr operand_side side = operand_side::table;
  static constexpr table_place place = Place;
  using table_of = Table;
};

namespace tables {
struct metric {
  template <class P>
  ATTUNE_HD static table const& of(P const& p) {
    return p.metric;
  }
};
struct bias {
  template <class P>
  ATTUNE_HD static table const& of(P const& p) {
    return p.bias;
  }
};
struct relative {
  template <class P>
  ATTUNE_HD static table const& of(P const& p) {
    return p.relative;
  }
  template <class P>
  ATTUNE_HD static index_t row(P const& p, index_t distance) {
    return distance + p.relative.rows() / 2;
  }
};
struct values {
  template <class P>
  ATTUNE_HD static table const& of(P const& p) {
    return p.values;
  }
  template <class P>
  ATTUNE_HD static index_t row(P const& p, index_t distance) {
    return p.index(distance);
  }
};
struct cosine {
  template <class P>
  ATTUNE_HD static table const& of(P const& p) {
    return p.cosine;
  }
};
struct sine {
  template <class P>
  ATTUNE_HD static table const& of(P const& p) {
    return p.sine;
  }
};
struct frequency {
  template <class P>
  ATTUNE_HD static table const& of(P const& p) {
    return p.frequency;
  }
};
}  // namespace tables

/// x, y, z: the operands; width(p, owner): the number of terms; term<S>(x, y, z, distance).
template <class C>
struct terms;

namespace detail {
template <class X, class Y = no_operand, class Z = no_operand>
struct operands {
  using x = X;
  using y = Y;
  using z = Z;
};
/// The product of one projection of the query and one of the key.
template <field Q, field K>
struct product_terms : operands<query_operand<Q>, key_operand<K>> {
  template <class Owner>
  ATTUNE_HD static index_t width(problem_shape const& p, Owner const&) {
    return p.width_of(Q);
  }
  template <class S>
  ATTUNE_HD static S term(S const& x, S const& y, S const&, S const&) {
    return x * y;
  }
};
/// Something that is read as it is.
template <class X>
struct plain_terms : operands<X> {
  template <class Owner>
  ATTUNE_HD static index_t width(problem_shape const&, Owner const&) {
    return 1;
  }
  template <class S>
  ATTUNE_HD static S term(S const& x, S const&, S const&, S const&) {
    return x;
  }
};
/// Sums over the features of q and k.
template <class Z = no_operand>
struct pair_terms : operands<query_operand<field::q>, key_operand<field::k>, Z> {
  template <class Owner>
  ATTUNE_HD static index_t width(problem_shape const& p, Owner const&) {
    return p.width;
  }
};
}  // namespace detail

template <>
struct terms<contraction::dot> : detail::product_terms<field::q, field::k> {};
template <>
struct terms<contraction::gate_dot> : detail::product_terms<field::gate_q, field::gate_k> {};
template <>
struct terms<contraction::position_dot> : detail::product_terms<field::position_q, field::position_k> {};
template <>
struct terms<contraction::squared_distance> : detail::pair_terms<> {
  template <class S>
  ATTUNE_HD static S term(S const& q, S const& k, S const&, S const&) {
    return (q - k) * (q - k);
  }
};
template <>
struct terms<contraction::metric_dot> : detail::pair_terms<table_operand<tables::metric, table_place::column>> {
  template <class S>
  ATTUNE_HD static S term(S const& q, S const& k, S const& m, S const&) {
    return m * q * k;
  }
};
template <>
struct terms<contraction::metric_distance> : detail::pair_terms<table_operand<tables::metric, table_place::column>> {
  template <class S>
  ATTUNE_HD static S term(S const& q, S const& k, S const& m, S const&) {
    return m * (q - k) * (q - k);
  }
};
template <class F>
struct terms<contraction::elementwise<F>> : detail::pair_terms<> {
  template <class S>
  ATTUNE_HD static S term(S const& q, S const& k, S const&, S const&) {
    return F::pair(q, k);
  }
};
template <>
struct terms<contraction::biased_dot> : detail::pair_terms<table_operand<tables::bias, table_place::column>> {
  template <class S>
  ATTUNE_HD static S term(S const& q, S const& k, S const& u, S const&) {
    return (q + u) * k;
  }
};
template <>
struct terms<contraction::relative_dot>
    : detail::operands<query_operand<field::q>, table_operand<tables::relative, table_place::of_distance>,
                       table_operand<tables::bias, table_place::column>> {
  template <class Owner>
  ATTUNE_HD static index_t width(problem_shape const& p, Owner const&) {
    return p.width;
  }
  template <class S>
  ATTUNE_HD static S term(S const& q, S const& r, S const& u, S const&) {
    return (q + u) * r;
  }
};
template <>
struct terms<contraction::scalar_difference> : detail::operands<query_operand<field::sort_q>, key_operand<field::sort_k>> {
  template <class Owner>
  ATTUNE_HD static index_t width(problem_shape const&, Owner const&) {
    return 1;
  }
  template <class S>
  ATTUNE_HD static S term(S const& q, S const& k, S const&, S const&) {
    return q - k;
  }
};
template <>
struct terms<contraction::spatial_distance>
    : detail::operands<query_operand<field::center>, key_operand<field::place>, query_operand<field::spread>> {
  template <class Owner>
  ATTUNE_HD static index_t width(problem_shape const& p, Owner const&) {
    return p.axes;
  }
  template <class S>
  ATTUNE_HD static S term(S const& center, S const& place, S const& spread, S const&) {
    S const z = (place - center) / spread;
    return z * z;
  }
};
template <>
struct terms<contraction::fourier>
    : detail::operands<table_operand<tables::cosine, table_place::row>, table_operand<tables::sine, table_place::row>,
                       table_operand<tables::frequency, table_place::row>> {
  template <class Owner>
  ATTUNE_HD static index_t width(problem_shape const&, Owner const& owner) {
    return owner.frequency.rows();
  }
  template <class S>
  ATTUNE_HD static S term(S const& a, S const& b, S const& w, S const& n) {
    return a * math::cos(S(w * n)) + b * math::sin(S(w * n));
  }
};
template <>
struct terms<contraction::gathered> : detail::plain_terms<table_operand<tables::values, table_place::of_distance>> {};
template <>
struct terms<contraction::given_bias> : detail::plain_terms<pair_operand<field::bias>> {};
template <>
struct terms<contraction::given_key_bias> : detail::plain_terms<key_operand<field::key_bias>> {};
template <>
struct terms<contraction::given_scores> : detail::plain_terms<pair_operand<field::scores>> {};
template <>
struct terms<contraction::given_gates> : detail::plain_terms<pair_operand<field::gates>> {};

/// The operand number N of a contraction.
template <class C, int N>
using operand_of =
    std::conditional_t<N == 0, typename terms<C>::x, std::conditional_t<N == 1, typename terms<C>::y, typename terms<C>::z>>;

}  // namespace attune::exec_thrust
