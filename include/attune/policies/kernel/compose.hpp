// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   (kernel + kernel) | map        s_ij = map(first_ij + second_ij)
//
// Kernels add. A map (a cap) applies to everything on its left. Both results are kernels again.
#pragma once

#include <utility>

#include <attune/policies/concepts.hpp>
#include <attune/policies/diagnostics.hpp>

namespace attune::kernel {

/// How an executor evaluates a kernel. `contractions` lists what to compute. `score` turns the values (x[0], x[1], ...
/// in that order) into the score. `owner<I>` is the policy that named contraction I and holds its tables. A composite
/// forwards to its parts.
template <class K>
struct evaluation {
  /// The contractions of the kernel, as a contraction::list.
  using contractions = contraction::named_by<K>;
  /// The policy that holds the tables of a contraction: the kernel itself.
  template <int>
  ATTUNE_HD static constexpr K const& owner(K const& kernel) {
    return kernel;
  }
  /// The bound policy that named a contraction: the bound kernel itself.
  template <int, class B>
  ATTUNE_HD static constexpr B const& part(B const& bound) {
    return bound;
  }
  template <class B, class T>
  ATTUNE_HD static ATTUNE_INLINE T score(B const& bound, [[maybe_unused]] T const* x, key<T> const& k) {
    if constexpr (contractions::size == 0)
      return bound.score(k);
    else if constexpr (contractions::size == 1)
      return bound.score(x[0], k);
    else
      return of_all(bound, x, k, std::make_integer_sequence<int, contractions::size>{});
  }

 private:
  template <class B, class T, int... Index>
  ATTUNE_HD static ATTUNE_INLINE T of_all(B const& bound, T const* x, key<T> const& k,
                                          std::integer_sequence<int, Index...>) {
    return bound.score(x[Index]..., k);
  }
};

/// Formula: s = first + second. The contractions of `first` come before the contractions of `second`.
template <class A, class B>
struct sum {
  static constexpr auto role = policy_role::kernel;
  /// The contractions of both kernels, as a contraction::list.
  using contractions =
      typename contraction::join<typename evaluation<A>::contractions, typename evaluation<B>::contractions>::type;
  A first;   ///< the left kernel
  B second;  ///< the right kernel

  /// Usually written a + b.
  constexpr sum(A a, B b) : first(a), second(b) {}
  static constexpr auto parameters() { return std::tuple<>{}; }  // the parts list their own; see operators/listing.hpp

  /// Both parts, bound to a row.
  template <class BoundA, class BoundB>
  struct bound {
    BoundA first;   ///< the left kernel, bound to the row
    BoundB second;  ///< the right kernel, bound to the row
  };
  template <class T>
  ATTUNE_HD auto bind(row<T> const& r) const {
    return bound<decltype(first.bind(r)), decltype(second.bind(r))>{first.bind(r), second.bind(r)};
  }
};

template <class A, class B>
struct evaluation<sum<A, B>> {
  using contractions = typename sum<A, B>::contractions;
  template <int Index>
  ATTUNE_HD static constexpr auto const& owner(sum<A, B> const& kernel) {
    constexpr int before = evaluation<A>::contractions::size;
    if constexpr (Index < before)
      return evaluation<A>::template owner<Index>(kernel.first);
    else
      return evaluation<B>::template owner<Index - before>(kernel.second);
  }
  template <int Index, class Bound>
  ATTUNE_HD static constexpr auto const& part(Bound const& bound) {
    constexpr int before = evaluation<A>::contractions::size;
    if constexpr (Index < before)
      return evaluation<A>::template part<Index>(bound.first);
    else
      return evaluation<B>::template part<Index - before>(bound.second);
  }
  template <class Bound, class T>
  ATTUNE_HD static ATTUNE_INLINE T score(Bound const& bound, T const* x, key<T> const& k) {
    return evaluation<A>::score(bound.first, x, k) +
           evaluation<B>::score(bound.second, x + evaluation<A>::contractions::size, k);
  }
};

/// Formula: s = map(kernel).
template <class K, class M>
struct mapped {
  static constexpr auto role = policy_role::kernel;
  /// The contractions of the inner kernel.
  using contractions = typename evaluation<K>::contractions;
  K inner;  ///< the kernel whose score is mapped
  M map;    ///< the score map

  /// Usually written k | m.
  constexpr mapped(K k, M m) : inner(k), map(m) {}
  static constexpr auto parameters() { return std::tuple<>{}; }

  template <class BoundK, class BoundM>
  struct bound {
    BoundK inner;  ///< the kernel, bound to the row
    BoundM map;    ///< the score map, bound to the row
  };
  template <class T>
  ATTUNE_HD auto bind(row<T> const& r) const {
    return bound<decltype(inner.bind(r)), decltype(map.bind(r))>{inner.bind(r), map.bind(r)};
  }
};

template <class K, class M>
struct evaluation<mapped<K, M>> {
  using contractions = typename mapped<K, M>::contractions;
  template <int Index>
  ATTUNE_HD static constexpr auto const& owner(mapped<K, M> const& kernel) {
    return evaluation<K>::template owner<Index>(kernel.inner);
  }
  template <int Index, class Bound>
  ATTUNE_HD static constexpr auto const& part(Bound const& bound) {
    return evaluation<K>::template part<Index>(bound.inner);
  }
  template <class Bound, class T>
  ATTUNE_HD static ATTUNE_INLINE T score(Bound const& bound, T const* x, key<T> const& k) {
    return bound.map.map(evaluation<K>::score(bound.inner, x, k));
  }
};

}  // namespace attune::kernel

namespace attune {

namespace kernel {
template <class A, class B>
inline constexpr bool is_composite<sum<A, B>> = true;
template <class K, class M>
inline constexpr bool is_composite<mapped<K, M>> = true;
}  // namespace kernel

/// The sum of two kernels: s = a + b. Both operands only need the role of a kernel. Anything else that they lack is a
/// compile error with a readable message.
template <class A, class B>
  requires HasRole<A, policy_role::kernel> && HasRole<B, policy_role::kernel>
constexpr auto operator+(A a, B b) {
  if constexpr (detail::complete<A>() && detail::complete<B>()) return kernel::sum<A, B>{a, b};
}

/// Applies a score map (a cap) to the score of a kernel: s = m(k).
template <class K, class M>
  requires HasRole<K, policy_role::kernel> && HasRole<M, policy_role::score_map>
constexpr auto operator|(K k, M m) {
  if constexpr (detail::complete<K>() && detail::complete<M>()) return kernel::mapped<K, M>{k, m};
}

namespace kernel {
using attune::operator+;  // found by argument-dependent lookup from here
using attune::operator|;
}  // namespace kernel

}  // namespace attune
