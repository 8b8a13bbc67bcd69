// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   using contraction = C;            score(x, key)            gate(s, x)
//   using contractions = list<C, D>;  score(x, y, key)         gate(s, x, y)
//
// The contractions that a kernel or a gate names: one, or a list of several. Pointwise code gets one argument for each,
// in the order of the list.
#pragma once

#include <attune/policies/contraction.hpp>

namespace attune {

/// The policy names one contraction.
template <class P>
concept NamesOneContraction = requires { typename P::contraction; };
/// The policy names a list of contractions.
template <class P>
concept NamesSeveralContractions = requires { typename P::contractions; };

namespace contraction {

/// A contraction::list of contractions with operands. `none` is no entry of a list.
template <class L>
inline constexpr bool is_list = false;
template <class... C>
inline constexpr bool is_list<list<C...>> = true;
/// Every entry of a list is a contraction.
template <class L>
inline constexpr bool has_known_entries = false;
template <class... C>
inline constexpr bool has_known_entries<list<C...>> = (true && ... && (is_known<C> && !std::is_base_of_v<none, C>));

namespace detail {
template <class P>
struct named {
  using type = list<>;
};
template <NamesOneContraction P>
struct named<P> {
  using type = single<typename P::contraction>;
};
template <NamesSeveralContractions P>
  requires(!NamesOneContraction<P>)
struct named<P> {
  using type = typename P::contractions;
};
}  // namespace detail

/// The contractions that a policy names, as a list.
template <class P>
using named_by = typename detail::named<P>::type;

}  // namespace contraction
}  // namespace attune
