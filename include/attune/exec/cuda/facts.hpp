// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   products_of<Op>::size, tile_facts<Op>::affine, require_tiles<Op>()
//
// Facts that the executor derives from an operator: which contractions are products on tensor cores, and what a tile
// may rely on. Nothing here knows a policy by its name.
#pragma once

#include <type_traits>

#include <attune/calls/executor.hpp>
#include <attune/exec/cuda/scalar/fast_float.hpp>
#include <attune/exec/problem.hpp>
#include <attune/operators/attention.hpp>
#include <attune/operators/row_state.hpp>

namespace attune::exec_cuda {

/// Finds the functions that compute rows.
struct engine {};

/// The calls of cuda<E>. Saved rows and gradients lie in memory of the device.
inline constexpr call_table offers = [] {
  call_table x;
  x.forward = x.forward_and_save = without(every_operator, &offer::folds, &offer::mixtures, &offer::candidate_sets,
                                           &offer::ordered_sums, &offer::pair_values);
  x.vjp = without(x.forward, &offer::extremes);
  x.results = result_place::memory;
  return x;
}();

/// A distance that is computed as |q|^2 + |k|^2 - 2 <q, k>.
template <class C>
inline constexpr bool is_distance =
    std::is_same_v<C, contraction::squared_distance> || std::is_same_v<C, contraction::metric_distance>;
/// A contraction whose sum over features is a product on tensor cores. All others are computed from their terms.
template <class C>
inline constexpr bool is_product = contraction::KeyProduct<C> || contraction::Rotary<C> || is_distance<C>;
/// A product whose operands are copied and changed before: turned, scaled, shifted.
template <class C>
inline constexpr bool is_prepared =
    is_product<C> && !contraction::PlainProduct<C> && !std::is_same_v<C, contraction::squared_distance>;
/// The keys of a product are changed too.
template <class C>
inline constexpr bool prepares_keys = contraction::Rotary<C>;

/// The number of products among the first N contractions of a list.
template <int N, class... C>
ATTUNE_HD constexpr int products_before() {
  constexpr bool product[] = {is_product<C>..., false};
  int count = 0;
  for (int n = 0; n < N; ++n) count += product[n] ? 1 : 0;
  return count;
}
ATTUNE_UNCHECKED template <class Visit, class... C, int... N>
ATTUNE_HD constexpr void visit_contractions(Visit const& visit, contraction::list<C...>,
                                            std::integer_sequence<int, N...>) {
  (..., visit(C{}, std::integral_constant<int, N>{},
              std::integral_constant<int, (is_product<C> ? products_before<N, C...>() : -1)>{}));
}
/// Calls visit(contraction, number among all contractions, number among the products or -1).
ATTUNE_UNCHECKED template <class... C, class Visit>
ATTUNE_HD constexpr void for_each_contraction(contraction::list<C...> all, Visit const& visit) {
  visit_contractions(visit, all, std::make_integer_sequence<int, int(sizeof...(C))>{});
}

template <class>
inline constexpr int products_in = 0;
template <class... C>
inline constexpr int products_in<contraction::list<C...>> = (0 + ... + int(is_product<C>));
template <class>
inline constexpr bool any_distance = false;
template <class... C>
inline constexpr bool any_distance<contraction::list<C...>> = (false || ... || is_distance<C>);
template <class>
inline constexpr bool any_derived = false;
template <class... C>
inline constexpr bool any_derived<contraction::list<C...>> = (false || ... || contraction::is_derived<C>);

/// An operator's bound form.
template <class Op, class T>
using bound_operator = decltype(std::declval<Op const&>().bind(std::declval<row<T> const&>()));

/// A normalizer whose earned mass is e^(a - m), which it declares by a member `exponential`.
template <class N>
inline constexpr bool exponential_masses = requires { requires N::exponential; };
/// A normalizer whose ground mass is max(e^(g - m) - e^(a - m), 0), where g is the row's lowest_reference(). A member
/// `fills_to_level` declares it.
template <class N>
inline constexpr bool ground_of_earned = exponential_masses<N> && requires { requires N::fills_to_level; };

/// The facts that a tile may rely on.
template <class Op>
struct tile_facts {
  using normalizer = typename Op::normalizer_policy;  ///< of the operator
  static constexpr normalizer_traits is = Op::normalizer_is;
  static constexpr int products = products_in<typename Op::contractions>;
  static constexpr bool range = is.family == row_family::range_weighted;
  /// Rows keep a second value sum.
  static constexpr bool second = row_state<float>::template has_second<normalizer>;
  static constexpr bool online = is.reference == mass_reference::running_maximum;
  using bound_kernel =
      decltype(std::declval<typename Op::kernel_policy const&>().bind(std::declval<row<float> const&>()));
  /// Logits are slope s + level of one product s: the maximum of a row is found on products.
  static constexpr bool affine = products == 1 && Op::contractions::size == 1 && Op::logit_contractions == 1 &&
                                 !Op::has_weight_gate && !any_distance<typename Op::contractions> &&
                                 is.family == row_family::masses && online &&
                                 std::is_same_v<typename Op::gate_policy::contraction, contraction::none> &&
                                 requires { requires bound_kernel::linear; };
  static constexpr bool fused = exponential_masses<normalizer>;
  static constexpr bool fills = ground_of_earned<normalizer>;
};

/// Fails to compile, with advice, where an operator stays on Thrust.
template <class Op>
constexpr bool require_tiles() {
  static_assert(!Op::has_threshold,
                "attune: cuda: the normalizer has a candidate set, which tiles cannot stream: use thrust_on");
  static_assert(!any_derived<typename Op::contractions>,
                "attune: cuda: ordered sums and rows read at an index need the keys in order: use thrust_on");
  static_assert(std::is_trivially_copyable_v<Op>,
                "attune: cuda: an operator is copied byte by byte: one of its policies is not trivially copyable");
  static_assert(sizeof(bound_operator<Op, float>) == sizeof(bound_operator<Op, fast_float>),
                "attune: cuda: what bind(row) returns must have the same size for float and for the scalar of a tile");
  return true;
}

}  // namespace attune::exec_cuda
