// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   x_ij = sum_d term(x_d, y_d, z_d, i + offset - j)
//
// A contraction is a number that an executor computes from tensors for each pair: up to three operands and one term. An
// operand is an input of the query, of the key or of the pair, or a table of the policy that names the contraction. The
// term gives the value; on dual numbers it gives the derivatives. A policy turns the value into a score or a gate, and
// sees nothing else of the tensors. To add a contraction, write a struct like those below, in this file or in your own
// code. Executors have faster code for products and distances.
#pragma once

#include <type_traits>

#include <attune/config.hpp>
#include <attune/core/math.hpp>
#include <attune/policies/operands.hpp>

namespace attune {

namespace contraction {

/// Base of every contraction: its operands. The number of terms is the number of features of the query and key inputs,
/// which must agree; without such inputs there is one term. A by_term table has a row for each term instead. Combine it
/// only with other tables.
template <class X, class Y = no_operand, class Z = no_operand>
struct sum_of {
  static_assert(X::side != operand_side::none && (Y::side != operand_side::none || Z::side == operand_side::none),
                "attune: contraction::sum_of<X, Y, Z>: an operand stands behind one that is none");
  static_assert((detail::in_table<X> && detail::in_table<Y> && detail::in_table<Z>) ||
                    (!detail::in_rows<X> && !detail::in_rows<Y> && !detail::in_rows<Z>),
                "attune: contraction::by_term stands with other tables alone; beside inputs a table is by_feature, "
                "by_distance, by_key or by_pair, and none of these is a companion of by_term");
  static_assert(!detail::share_table<X, Y> && !detail::share_table<X, Z> && !detail::share_table<Y, Z>,
                "attune: a contraction reads a table in one operand");
  using x = X;  ///< the first operand
  using y = Y;  ///< the second operand
  using z = Z;  ///< the third operand
  /// The number of operands that are present.
  static constexpr int operands =
      int(X::side != operand_side::none) + int(Y::side != operand_side::none) + int(Z::side != operand_side::none);
  /// Whether an operand is the input f.
  ATTUNE_HD static constexpr bool uses(field f) { return reads<X>(f) || reads<Y>(f) || reads<Z>(f); }

 private:
  template <class Operand>
  ATTUNE_HD static constexpr bool reads([[maybe_unused]] field f) {
    if constexpr (Operand::side == operand_side::none || Operand::side == operand_side::table)
      return false;
    else
      return Operand::of == f;
  }
};

/// The left factor of a product, from x of the query and z of a by_feature table.
struct plain_left {
  /// x.
  template <class S>
  ATTUNE_HD static S left(S const& x, S const&) {
    return x;
  }
};
/// The left factor z x: the query feature times the number of the table.
struct scaled_left {
  /// z x.
  template <class S>
  ATTUNE_HD static S left(S const& x, S const& z) {
    return z * x;
  }
};
/// The left factor x + z: the query feature plus the number of the table.
struct shifted_left {
  /// x + z.
  template <class S>
  ATTUNE_HD static S left(S const& x, S const& z) {
    return x + z;
  }
};
/// sum_d left(x, z) y: a product of query features with features of a key or of a distance.
template <class Left, class X, class Y, class Z = no_operand>
struct product : sum_of<X, Y, Z>, Left {
  using product_type = product;  ///< marks a product for executors
  using left_type = Left;        ///< how x and z are combined
  /// left(x, z) y.
  template <class S>
  ATTUNE_HD static S term(S const& x, S const& y, S const& z, S const&) {
    return Left::left(x, z) * y;
  }
};
/// A sum over the features of q and k whose term reads neither a table nor the distance. Executors keep such sums in
/// registers.
struct feature_sum : sum_of<of_query<field::q>, of_key<field::k>> {};
/// One number, without change.
template <class X>
struct plain : sum_of<X> {
  using plain_type = plain;  ///< marks a plain number for executors
  /// x.
  template <class S>
  ATTUNE_HD static S term(S const& x, S const&, S const&, S const&) {
    return x;
  }
};

/// No tensor: the policy works from positions alone.
struct none {
  /// False: no input is read.
  ATTUNE_HD static constexpr bool uses(field) { return false; }
};
/// No tensor: a random number in [0, 1) for each pair, a multiple of 2^-24 (core/philox.hpp). For weight gates only.
/// The policy has the 64-bit number `seed`.
struct uniform : none {};
/// <q_i, k_j>
struct dot : product<plain_left, of_query<field::q>, of_key<field::k>> {};
/// |q_i - k_j|^2, from differences
struct squared_distance : feature_sum {
  /// (q - k)^2.
  template <class S>
  ATTUNE_HD static S term(S const& q, S const& k, S const&, S const&) {
    return (q - k) * (q - k);
  }
};
/// sum_d m_d q_id k_jd,   table `metric` (1|B, 1|H, 1, D) of the policy
struct metric_dot : product<scaled_left, of_query<field::q>, of_key<field::k>, by_feature<tables::metric>> {};
/// sum_d m_d (q_id - k_jd)^2,   table `metric`
struct metric_distance : sum_of<of_query<field::q>, of_key<field::k>, by_feature<tables::metric>> {
  /// m (q - k)^2.
  template <class S>
  ATTUNE_HD static S term(S const& q, S const& k, S const& m, S const&) {
    return m * (q - k) * (q - k);
  }
};
/// sum_d F::pair(q_id, k_jd) for a stateless F with `template <class T> static T pair(T const& q, T const& k)`: any sum
/// over features
template <class F>
struct elementwise : feature_sum {
  /// F::pair(q, k).
  template <class S>
  ATTUNE_HD static S term(S const& q, S const& k, S const&, S const&) {
    return F::pair(q, k);
  }
};
/// <q_i + b, k_j>,   table `bias` (1|B, 1|H, 1, D)
struct biased_dot : product<shifted_left, of_query<field::q>, of_key<field::k>, by_feature<tables::bias>> {};
/// <q_i + b, r_n>, n = i + offset - j + floor(R / 2),   tables `bias` (1|B, 1|H, 1, D) and `relative` (1|B, 1|H, R, D)
struct relative_dot
    : product<shifted_left, of_query<field::q>, by_distance<tables::relative>, by_feature<tables::bias>> {};
/// <R(p_i) q_i, R(p_j) k_j>: rotary embeddings. The policy has the members `angles` (rotary_rows), `layout` and `keys`
/// (core/rotary_angles.hpp). A turned feature reads two features. So there is no term: executors turn rows.
struct rotary_dot : sum_of<of_query<field::q>, of_key<field::k>> {};
/// <gate_q_i, gate_k_j>
struct gate_dot : product<plain_left, of_query<field::gate_q>, of_key<field::gate_k>> {};
/// <position_q_i, position_k_j>
struct position_dot : product<plain_left, of_query<field::position_q>, of_key<field::position_k>> {};
/// sort_q_i - sort_k_j, one number each
struct scalar_difference : sum_of<of_query<field::sort_q>, of_key<field::sort_k>> {
  /// q - k.
  template <class S>
  ATTUNE_HD static S term(S const& q, S const& k, S const&, S const&) {
    return q - k;
  }
};
/// sum_x ((place_jx - center_ix) / spread_ix)^2
struct spatial_distance : sum_of<of_query<field::center>, of_key<field::place>, of_query<field::spread>> {
  /// ((place - center) / spread)^2.
  template <class S>
  ATTUNE_HD static S term(S const& center, S const& place, S const& spread, S const&) {
    S const z = (place - center) / spread;
    return z * z;
  }
};
/// table `values` (1|B, 1|H, R, 1) at row `index(i + offset - j)` of the policy
struct gathered : plain<by_distance<tables::values>> {};
/// table `values` (1|B, 1|H, R, 1) at row `index(i + offset, j)` of the policy
struct gathered_by_pair : plain<by_pair<tables::values>> {};
/// table `per_key` (1|B, 1|H, Lk, 1) of the policy at row j: a learned number for each key
struct per_key : plain<by_key<tables::per_key>> {};
/// sum_r a_r cos(w_r (i + offset - j)) + b_r sin(w_r (i + offset - j)),
///     tables `cosine`, `sine`, `frequency` (1|B, 1|H, R, 1)
struct fourier : sum_of<by_term<tables::cosine>, by_term<tables::sine>, by_term<tables::frequency>> {
  /// a cos(w n) + b sin(w n) at the distance n.
  template <class S>
  ATTUNE_HD static S term(S const& a, S const& b, S const& w, S const& n) {
    return a * math::cos(S(w * n)) + b * math::sin(S(w * n));
  }
};
/// bias_ij, computed by the caller
struct given_bias : plain<of_pair<field::bias>> {};
/// key_bias_j, one number per key
struct given_key_bias : plain<of_key<field::key_bias>> {};
/// scores_ij, computed by the caller
struct given_scores : plain<of_pair<field::scores>> {};
/// gates_ij, computed by the caller
struct given_gates : plain<of_pair<field::gates>> {};

/// A contraction type: it has operands, or is `none`.
template <class C>
inline constexpr bool is_known = requires {
  typename C::z;
  C::operands;
};
template <>
inline constexpr bool is_known<none> = true;
template <>
inline constexpr bool is_known<uniform> = true;

/// A sum over the keys on one side of a key (policies/ordered_sum.hpp).
template <class C>
inline constexpr bool is_ordered = requires { typename C::ordered_type; };
/// A row of numbers, read at the index that an ordered sum gives (policies/interpolated.hpp).
template <class C>
inline constexpr bool is_interpolated = requires { typename C::interpolated_type; };
/// A contraction that is computed from the values of other contractions.
template <class C>
inline constexpr bool is_derived = is_ordered<C> || is_interpolated<C>;

namespace detail {
/// C inherits the term of Base unchanged.
template <class C, class Base>
inline constexpr bool keeps_term = &C::template term<double> == &Base::template term<double>;
template <class Left>
inline constexpr bool is_linear =
    std::is_same_v<Left, plain_left> || std::is_same_v<Left, scaled_left> || std::is_same_v<Left, shifted_left>;
}  // namespace detail

/// left(x, z) y with a left factor that executors know. x is of the query; z is absent or by_feature.
template <class C>
concept Product = requires { typename C::product_type; } && detail::is_linear<typename C::left_type> &&
                  detail::keeps_term<C, typename C::product_type> && C::x::side == operand_side::query &&
                  (C::z::side == operand_side::none || requires { requires C::z::place == table_place::column; });
/// A product with features of the keys.
template <class C>
concept KeyProduct = Product<C> && C::y::side == operand_side::key;
/// A product with features of the distance.
template <class C>
concept DistanceProduct = Product<C> && requires { requires C::y::place == table_place::of_distance; };
/// A product of the unchanged query with features of the keys.
template <class C>
concept PlainProduct = KeyProduct<C> && std::is_same_v<typename C::left_type, plain_left>;
/// A product of queries and keys that are turned by angles.
template <class C>
concept Rotary = std::is_same_v<C, rotary_dot>;
/// A number that is read without change.
template <class C>
concept Plain = requires { typename C::plain_type; } && detail::keeps_term<C, typename C::plain_type>;

/// A table with a row for each pair.
template <class Operand>
inline constexpr bool is_by_pair = false;
template <class Table>
inline constexpr bool is_by_pair<by_pair<Table>> = true;
/// One number of a table with a row for each pair, read without change.
template <class C>
concept PairLookup = Plain<C> && is_by_pair<typename C::x>;

/// A contraction with the same value for all pairs at one distance.
template <class C>
inline constexpr bool of_distance_alone = !is_derived<C> && detail::in_table<typename C::x> &&
                                          detail::in_table<typename C::y> && detail::in_table<typename C::z>;

/// Operand number N.
template <class C, int N>
using operand_of = std::conditional_t<N == 0, typename C::x, std::conditional_t<N == 1, typename C::y, typename C::z>>;

/// The contractions of an operator, in the order in which pointwise code receives their values.
template <class... C>
struct list {
  static constexpr int size = sizeof...(C);  ///< number of contractions
  /// Whether a contraction of the list reads the input f.
  ATTUNE_HD static constexpr bool uses([[maybe_unused]] field f) { return (false || ... || C::uses(f)); }
  /// Whether X is in the list.
  template <class X>
  static constexpr bool contains = (false || ... || std::is_same_v<X, C>);
  /// A contraction of the list is derived: its value for one key depends on other keys of the row.
  static constexpr bool has_derived = (false || ... || is_derived<C>);
};
/// Concatenates two lists.
template <class A, class B>
struct join;
template <class... A, class... B>
struct join<list<A...>, list<B...>> {
  using type = list<A..., B...>;
};
namespace detail {
template <class C>
struct inner_of {
  using type = C;
};
template <class C>
  requires is_ordered<C>
struct inner_of<C> {
  using type = typename C::inner;
};
template <class C>
  requires is_interpolated<C>
struct inner_of<C> {
  using type = typename C::index::inner;
};
template <class C>
struct alone {
  using type = list<C>;
};
template <class C>
  requires std::is_base_of_v<none, C>
struct alone<C> {
  using type = list<>;
};
template <class C>
  requires is_ordered<C>
struct alone<C> {
  using type = list<typename C::inner, C>;
};
template <class C>
  requires is_interpolated<C>
struct alone<C> {
  using type = list<typename C::index::inner, typename C::index, C>;
};
}  // namespace detail
/// The contraction that operands belong to: C itself, or what an ordered sum C adds, or the same of the index of C.
template <class C>
using inner_of = typename detail::inner_of<C>::type;

/// A list of one contraction; empty for contraction::none and contraction::uniform. An ordered sum comes after the
/// contraction that it adds, and an interpolated row after the sum that gives its index.
template <class C>
using single = typename detail::alone<C>::type;

}  // namespace contraction
}  // namespace attune
