// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   auto moving = along_members<dual<T, 2 + n>>(policy, bound, 2);   member m of a bound policy is direction 2 + m
//   by_member[m] += da * logit(moving).tangent[2 + m];               for every key of the row
//   add_by_parameters<P, T, N>(policy, policy.bind(row_of_duals), by_member, gradient);    once a row
//
// Gradients by parameters through the members of a bound policy. A policy that is bound to a row is a few numbers. The
// loop over the keys sums the gradient by each of them. Binding the policy once more, to a row whose parameters move,
// gives the derivatives of the members by the parameters. So the loop does not depend on the parameters, nor on
// how `bind` reads them.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <attune/core/dual.hpp>
#include <attune/policies/kernel/compose.hpp>

namespace attune {

namespace detail {

/// A policy, bound to a row of T.
template <class P, class T>
using bound_of = decltype(std::declval<P const&>().bind(std::declval<row<T> const&>()));

template <class D>
inline constexpr int direction_count = 0;
template <class T, int N, chain_rule Rule>
inline constexpr int direction_count<dual<T, N, Rule>> = N;

/// How many scalars a bound policy has; -1 if it has another member, too: a whole number, padding, a pointer to a
/// table. Sizes tell: a struct of n scalars, and only that, grows by n times what its scalar grows.
template <class P>
constexpr int count_members() {
  using one = bound_of<P, float>;
  if constexpr (std::is_empty_v<one>) {
    return 0;
  } else {
    using two = bound_of<P, dual<float, 1>>;
    using three = bound_of<P, dual<float, 2>>;
    constexpr std::size_t n = sizeof(one) / sizeof(float);
    constexpr bool all = sizeof(one) == n * sizeof(float) && sizeof(two) == n * sizeof(dual<float, 1>) &&
                         sizeof(three) == n * sizeof(dual<float, 2>) && std::is_trivially_copyable_v<one>;
    return all ? int(n) : -1;
  }
}

/// The scalars of a bound policy. A composite has the scalars of its parts, from left to right.
template <class P>
struct members {
  static constexpr int count = count_members<P>();

  /// Writes the scalars to `to`.
  template <class T>
  ATTUNE_HD ATTUNE_INLINE static void read([[maybe_unused]] bound_of<P, T> const& from, [[maybe_unused]] T* to) {
    if constexpr (count > 0) __builtin_memcpy(static_cast<void*>(to), &from, sizeof(from));
  }
  /// A bound policy of these scalars.
  template <class D>
  ATTUNE_HD ATTUNE_INLINE static bound_of<P, D> made([[maybe_unused]] D const* from) {
    bound_of<P, D> to;
    if constexpr (count > 0) __builtin_memcpy(static_cast<void*>(&to), from, sizeof(to));
    return to;
  }
};
/// Of a composite P of A and B, whose bound object has a bound A and a bound B.
template <class P, class A, class B>
struct members_of_two {
  static constexpr int count =
      members<A>::count < 0 || members<B>::count < 0 ? -1 : members<A>::count + members<B>::count;
  template <class T>
  ATTUNE_HD ATTUNE_INLINE static void read(bound_of<P, T> const& from, T* to) {
    auto const& [first, second] = from;
    members<A>::template read<T>(first, to);
    members<B>::template read<T>(second, to + members<A>::count);
  }
  template <class D>
  ATTUNE_HD ATTUNE_INLINE static bound_of<P, D> made(D const* from) {
    return {members<A>::made(from), members<B>::made(from + members<A>::count)};
  }
};
template <class A, class B>
struct members<kernel::sum<A, B>> : members_of_two<kernel::sum<A, B>, A, B> {};
template <class K, class M>
struct members<kernel::mapped<K, M>> : members_of_two<kernel::mapped<K, M>, K, M> {};

}  // namespace detail

/// Whether a policy, bound to a row, is scalars and nothing else, so that it can move along each of them. A policy that
/// keeps a whole number or a table's entries is not. Its gradients need a direction for each parameter.
template <class P>
inline constexpr bool has_members = detail::members<P>::count >= 0;
/// The number of scalars of a policy that is bound to a row: 0 for one without parameters.
template <class P>
  requires has_members<P>
inline constexpr int member_count = detail::members<P>::count;

/// A policy that is bound to a row, in another scalar: change(x, m) is the scalar D for member m.
template <class D, class P, class T, class Change>
  requires has_members<P>
ATTUNE_HD ATTUNE_INLINE detail::bound_of<P, D> with_members(detail::bound_of<P, T> const& bound,
                                                            [[maybe_unused]] Change const& change) {
  T still[member_count<P> + 1];
  D all[member_count<P> + 1];
  detail::members<P>::template read<T>(bound, still);
  ATTUNE_UNROLL
  for (int m = 0; m < member_count<P>; ++m) all[m] = change(still[m], m);
  return detail::members<P>::template made<D>(all);
}
/// A policy bound to a row of D's values, whose member m moves along direction first + m.
/// Errors: does not compile where !has_members<P>, or where D has too few directions.
template <class D, class P>
  requires has_members<P>
ATTUNE_HD ATTUNE_INLINE detail::bound_of<P, D> along_members(P const&,
                                                             detail::bound_of<P, typename D::value_type> const& bound,
                                                             int first = 0) {
  static_assert(member_count<P> <= detail::direction_count<D>,
                "attune: along_members needs a direction for every member of the bound policy");
  using T = typename D::value_type;
  return with_members<D, P, T>(bound, [&](T const& x, int m) { return D::variable(x, first + m); });
}
/// The same, where no member moves.
template <class D, class P>
  requires has_members<P>
ATTUNE_HD ATTUNE_INLINE detail::bound_of<P, D> still_members(detail::bound_of<P, typename D::value_type> const& bound) {
  using T = typename D::value_type;
  return with_members<D, P, T>(bound, [](T const& x, int) { return D(x); });
}

/// gradient[n] += sum_m by_member[m] d(member m)/d(direction n) for a policy bound to a row whose parameters have
/// tangents, `moving`. A member that does not move contributes exactly 0, whatever its gradient is.
template <class P, class T, int N, chain_rule Rule>
  requires has_members<P>
ATTUNE_HD void add_by_parameters(P const&, detail::bound_of<P, dual<T, N, Rule>> const& moving, T const* by_member,
                                 T* gradient) {
  dual<T, N, Rule> all[member_count<P> + 1];
  detail::members<P>::template read<dual<T, N, Rule>>(moving, all);
  for (int m = 0; m < member_count<P>; ++m)
    for (int n = 0; n < N; ++n) gradient[n] = gradient[n] + detail::chained(by_member[m], all[m].tangent[n]);
}

}  // namespace attune
