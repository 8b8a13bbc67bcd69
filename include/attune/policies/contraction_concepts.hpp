// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   detail::named_in_list<P>::score, ...::find_tables
//
// Requirements of the contractions that a policy names: of themselves, and of the policy.
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include <attune/core/row.hpp>
#include <attune/policies/interpolated.hpp>
#include <attune/policies/named_contractions.hpp>
#include <attune/policies/ordered_sum.hpp>

namespace attune {

/// The object that a policy returns when it is bound to a row of doubles.
template <class P>
using bound_t = decltype(std::declval<P const&>().bind(std::declval<row<double> const&>()));

/// The policy names one contraction, or a list of several: see policies/named_contractions.hpp.
template <class P>
concept NamesContraction =
    NamesOneContraction<P> != NamesSeveralContractions<P> && contraction::has_known_entries<contraction::named_by<P>>;

/// An elementwise contraction needs F::pair(q, k). True for every other contraction.
template <class C>
inline constexpr bool OffersPair = true;
template <class F>
inline constexpr bool OffersPair<contraction::elementwise<F>> = requires(double q, double k) {
  { F::pair(q, k) } -> std::convertible_to<double>;
};

/// The contraction has a `term`, turns its operands, or is an ordered sum of another.
template <class C>
concept OffersTerm = std::is_base_of_v<contraction::none, C> || contraction::is_ordered<C> || contraction::Rotary<C> ||
                     requires(double x) {
                       { C::term(x, x, x, x) } -> std::convertible_to<double>;
                     };
/// The policy has the tables that its contraction reads.
template <class P, class Operand>
inline constexpr bool OffersTable = true;
template <class P, class Table, contraction::table_place Place>
inline constexpr bool OffersTable<P, contraction::table_operand<Table, Place>> = requires(P const& p) { Table::of(p); };
template <class P, class C>
concept OffersTables =
    std::is_base_of_v<contraction::none, C> ||
    (OffersTable<P, typename C::x> && OffersTable<P, typename C::y> && OffersTable<P, typename C::z>);

/// contraction::gathered needs index(distance) and values.rows() from the policy that names it. True for every other
/// contraction.
template <class P, class C>
inline constexpr bool OffersRows = true;
template <class P>
inline constexpr bool OffersRows<P, contraction::gathered> = requires(P const& p, index_t distance) {
  { p.index(distance) } -> std::convertible_to<index_t>;
  p.values.rows();
};

/// contraction::gathered_by_pair needs an integer index(position, key) and values.rows() from the policy that names it.
/// True for every other contraction.
template <class P, class C>
inline constexpr bool OffersPairRows = true;
template <class P>
inline constexpr bool OffersPairRows<P, contraction::gathered_by_pair> =
    requires(P const& p, index_t position, index_t key) {
      { p.index(position, key) } -> std::integral;
      p.values.rows();
    };
/// contraction::rotary_dot needs angles, a layout and how keys are stored. True for every other contraction.
template <class P, class C>
inline constexpr bool OffersAngles = true;
template <class P>
inline constexpr bool OffersAngles<P, contraction::rotary_dot> = requires(P const& p) {
  p.angles.row_of_query(0, 0);
  p.layout;
  p.keys;
};
/// An ordered sum needs F::map(x) or F::map(bound, x). True for every other contraction.
template <class P, class C>
inline constexpr bool OffersMap = true;
template <class P, class C>
  requires contraction::is_ordered<C>
inline constexpr bool OffersMap<P, C> = requires(bound_t<P> const& b, double x) {
  { C::map_type::map(b, x) } -> std::convertible_to<double>;
} || requires(double x) {
  { C::map_type::map(x) } -> std::convertible_to<double>;
};

namespace detail {
/// A double for each contraction of a list.
template <class>
using number_for = double;
/// The requirements of the contractions in a list: of themselves, and of the policy P that names them. An ordered sum
/// needs the same as the contraction that it adds.
template <class P, class List>
struct named_in;
template <class P, class... C>
struct named_in<P, contraction::list<C...>> {
  template <class X>
  using inner = contraction::inner_of<X>;
  static constexpr bool offer_pairs = (true && ... && OffersPair<inner<C>>),
                        offer_terms = (true && ... && OffersTerm<inner<C>>),
                        find_tables = (true && ... && OffersTables<P, inner<C>>),
                        find_rows = (true && ... && OffersRows<P, inner<C>>),
                        find_pair_rows = (true && ... && OffersPairRows<P, inner<C>>),
                        find_angles = (true && ... && OffersAngles<P, inner<C>>),
                        offer_maps = (true && ... && OffersMap<P, C>),
                        any_ordered = (false || ... || contraction::is_ordered<C>);
  /// score(x, y, ..., key), with one argument for each contraction.
  static constexpr bool score = requires(bound_t<P> const& b, number_for<C>... x, key<double> k) {
    { b.score(x..., k) } -> std::convertible_to<double>;
  };
  /// gate(s, x, y, ...), with one argument for each contraction.
  static constexpr bool gate = requires(bound_t<P> const& b, double s, number_for<C>... x) {
    { b.gate(s, x...) } -> std::convertible_to<double>;
  };
};
/// The same for the list that the policy names.
template <class P>
using named_in_list = named_in<P, contraction::named_by<P>>;
}  // namespace detail

}  // namespace attune
