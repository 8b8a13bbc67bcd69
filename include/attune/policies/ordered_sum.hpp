// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   y_ij = sum F::map(x_ij')    over the visible keys j' > j (later) or j' < j (earlier),    x = another contraction
//
// Sums over the keys on one side of a key, in key order. A kernel that names one gets x_ij and y_ij:
// score(x, y, key). Executors stream the keys of a row in the order of the sum and keep one running number. Keys that
// the row does not see add nothing, whatever they hold.
#pragma once

#include <tuple>
#include <utility>

#include <attune/policies/contraction.hpp>

namespace attune {

namespace contraction {

/// Which keys j' an ordered sum of the pair (i, j) adds.
enum class key_order {
  later,    ///< j' > j
  earlier,  ///< j' < j
};
/// The other order.
ATTUNE_HD constexpr key_order opposite(key_order order) {
  return order == key_order::later ? key_order::earlier : key_order::later;
}
/// Whether an ordered sum of the pair (i, j) also adds key j itself.
enum class own_key { excluded, included };

/// The sum of F::map(x_ij') over the visible keys on one side of j. x: the contraction C of the same policy.
/// F: a stateless type with `template <class T> static T map(T const& x)`, or with
///    `template <class Bound, class T> static T map(Bound const& bound, T const& x)`. `bound` is then the policy, bound
///    to the row. Both are pointwise code like any other.
/// Complexity: one F::map and one addition per pair; gradients compute C once more.
template <class C, class F, key_order Order, own_key Own>
struct ordered_sum {
  static_assert(is_known<C> && !std::is_same_v<C, none>,
                "attune: an ordered sum such as contraction::later_sum<C, F> adds a map of another contraction C: name "
                "one that reads tensors, such as contraction::dot");
  static_assert(!is_derived<C>,
                "attune: an ordered sum of an ordered sum does not exist: sum a contraction that reads "
                "tensors, such as contraction::dot");
  using ordered_type = ordered_sum;          ///< marks an ordered sum for executors
  using inner = C;                           ///< x
  using map_type = F;                        ///< F
  static constexpr key_order order = Order;  ///< which keys are added
  static constexpr own_key own = Own;        ///< whether key j is added too
  using x = no_operand;                      ///< reads no tensor itself
  using y = no_operand;                      ///< reads no tensor itself
  using z = no_operand;                      ///< reads no tensor itself
  static constexpr int operands = 0;         ///< none: the value comes from other values
  /// Whether C reads the input f.
  ATTUNE_HD static constexpr bool uses(field f) { return C::uses(f); }
};
/// y_ij = sum of F::map(x_ij') over the visible keys j' > j
template <class C, class F>
using later_sum = ordered_sum<C, F, key_order::later, own_key::excluded>;
/// y_ij = sum of F::map(x_ij') over the visible keys j' >= j
template <class C, class F>
using later_sum_with_own = ordered_sum<C, F, key_order::later, own_key::included>;
/// y_ij = sum of F::map(x_ij') over the visible keys j' < j
template <class C, class F>
using earlier_sum = ordered_sum<C, F, key_order::earlier, own_key::excluded>;
/// y_ij = sum of F::map(x_ij') over the visible keys j' <= j
template <class C, class F>
using earlier_sum_with_own = ordered_sum<C, F, key_order::earlier, own_key::included>;

/// The list has an ordered sum.
template <class List>
inline constexpr bool has_ordered = false;
template <class... C>
inline constexpr bool has_ordered<list<C...>> = (false || ... || is_ordered<C>);

/// Contraction number Index of a list.
template <class List, int Index>
struct element;
template <class... C, int Index>
struct element<list<C...>, Index> {
  using type = std::tuple_element_t<std::size_t(Index), std::tuple<C...>>;
};

namespace detail {
/// The last contraction before number Index that is C; -1 if there is none.
template <class C, class... All>
constexpr int last_before(int index) {
  int n = 0, found = -1;
  (..., (found = std::is_same_v<C, All> && n < index ? n : found, ++n));
  return found;
}
template <class... C>
constexpr int orders_in(key_order order) {
  int n = 0;
  [[maybe_unused]] auto const one = [&]<class X>(std::type_identity<X>) {
    if constexpr (is_ordered<X>) n += X::order == order;
  };
  (..., one(std::type_identity<C>{}));
  return n;
}
}  // namespace detail

/// The number of the contraction that ordered sum number Index of a list adds: the last one before it that is its C.
template <class List, int Index>
inline constexpr int source_of = -1;
template <class... C, int Index>
inline constexpr int source_of<list<C...>, Index> =
    detail::last_before<typename element<list<C...>, Index>::type::inner, C...>(Index);

/// The order in which the ordered sums of a list take the keys.
template <class List>
inline constexpr key_order order_of = key_order::earlier;
template <class... C>
inline constexpr key_order order_of<list<C...>> =
    detail::orders_in<C...>(key_order::later) > 0 ? key_order::later : key_order::earlier;
/// All ordered sums of a list take the keys in one order.
template <class List>
inline constexpr bool one_order = true;
template <class... C>
inline constexpr bool one_order<list<C...>> =
    detail::orders_in<C...>(key_order::later) == 0 || detail::orders_in<C...>(key_order::earlier) == 0;
/// Each ordered sum of a list stands behind the contraction that it adds.
template <class List>
constexpr bool has_sources() {
  return []<int... Index>(std::integer_sequence<int, Index...>) {
    [[maybe_unused]] auto const one = []<int N>(std::integral_constant<int, N>) {
      if constexpr (is_ordered<typename element<List, N>::type>)
        return source_of<List, N> >= 0;
      else
        return true;
    };
    return (true && ... && one(std::integral_constant<int, Index>{}));
  }(std::make_integer_sequence<int, List::size>{});
}

namespace detail {
template <class List, int Index, class Visit>
ATTUNE_HD constexpr void visit_if_ordered([[maybe_unused]] Visit const& visit) {
  using C = typename element<List, Index>::type;
  if constexpr (is_ordered<C>)
    visit(C{}, std::integral_constant<int, Index>{}, std::integral_constant<int, source_of<List, Index>>{});
}
template <class List, class Visit, int... Index>
ATTUNE_HD constexpr void visit_each_ordered(Visit const& visit, std::integer_sequence<int, Index...>) {
  (..., detail::visit_if_ordered<List, Index>(visit));
}
}  // namespace detail
/// Calls visit(the ordered sum, its number, the number of its source) for each ordered sum of a list. The numbers are
/// integral constants.
template <class List, class Visit>
ATTUNE_HD constexpr void each_ordered(Visit const& visit) {
  detail::visit_each_ordered<List>(visit, std::make_integer_sequence<int, List::size>{});
}
/// The number of ordered sums in a list.
template <class List>
constexpr int count_ordered() {
  int n = 0;
  each_ordered<List>([&](auto, auto, auto) { ++n; });
  return n;
}

/// F::map(bound, x) or F::map(x) of an ordered sum. `bound`: the policy that named the sum, bound to the row.
template <class C, class Bound, class T>
ATTUNE_HD ATTUNE_INLINE T mapped([[maybe_unused]] Bound const& bound, T const& x) {
  if constexpr (requires { C::map_type::map(bound, x); })
    return C::map_type::map(bound, x);
  else
    return C::map_type::map(x);
}

}  // namespace contraction

/// The operator has an ordered sum.
template <class Op>
inline constexpr bool has_ordered_sums = contraction::has_ordered<typename Op::contractions>;
/// The operator must see the keys of a row from the last to the first.
template <class Op>
inline constexpr bool takes_later_keys_first =
    has_ordered_sums<Op> && contraction::order_of<typename Op::contractions> == contraction::key_order::later;

}  // namespace attune
