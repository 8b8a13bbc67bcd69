// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   number(op)      gives parameters and tables the numbers 0, 1, ... in the order of the pipeline
//
// Gradients identify parameters and tables by these numbers. A copy of a parameter keeps its number, so its gradient is
// complete wherever `bind` reads the value from.
#pragma once

#include <tuple>
#include <type_traits>

#include <attune/policies/concepts.hpp>
#include <attune/policies/kernel/compose.hpp>

namespace attune::detail {

/// Placeholder for a path that nobody reads.
struct no_path {
  friend constexpr no_path operator+(no_path, char const*) { return {}; }
};

template <class>
inline constexpr bool is_sum = false;
template <class A, class B>
inline constexpr bool is_sum<kernel::sum<A, B>> = true;
template <class>
inline constexpr bool is_mapped = false;
template <class K, class M>
inline constexpr bool is_mapped<kernel::mapped<K, M>> = true;

/// Whether `bind` of a policy, or of a part of a composite, reads tables.
template <class P>
struct reads_entries {
  static constexpr bool value = ReadsEntries<P>;
};
template <class A, class B>
struct reads_entries<kernel::sum<A, B>> {
  static constexpr bool value = reads_entries<A>::value || reads_entries<B>::value;
};
template <class K, class M>
struct reads_entries<kernel::mapped<K, M>> {
  static constexpr bool value = reads_entries<K>::value || reads_entries<M>::value;
};

/// Whether pointwise code of an operator reads tables.
template <class Op>
inline constexpr bool has_entries =
    reads_entries<typename Op::kernel_policy>::value || reads_entries<typename Op::length_scale_policy>::value ||
    reads_entries<typename Op::gate_policy>::value;

/// Calls visit(policy, path) for a policy, or for the parts of a composite from left to right: "kernel.0.",
/// "kernel.1.", "kernel.map.".
template <class P, class Path, class Visit>
constexpr void for_each_part(P& policy, Path const& path, Visit const& visit) {
  using kind = std::remove_const_t<P>;
  if constexpr (is_sum<kind>) {
    detail::for_each_part(policy.first, path + "0.", visit);
    detail::for_each_part(policy.second, path + "1.", visit);
  } else if constexpr (is_mapped<kind>) {
    if constexpr (requires { policy.inner.map; })  // a map of a map: each needs its own path
      detail::for_each_part(policy.inner, path + "inner.", visit);
    else
      detail::for_each_part(policy.inner, path, visit);
    detail::for_each_part(policy.map, path + "map.", visit);
  } else {
    visit(policy, path);
  }
}

/// Calls visit(policy, path) for all policies of an operator except the mask, in the order of the pipeline.
template <class Op, class Path, class Visit>
constexpr void for_each_policy(Op& op, Path const& path, Visit const& visit) {
  Op::each_policy(op, [&](auto& policy, char const* name) { detail::for_each_part(policy, path + name, visit); });
}

/// Numbers an operator's parameters and tables.
template <class Op>
constexpr void number(Op& op) {
  int parameters = 0, tables = 0;
  detail::for_each_policy(op, no_path{}, [&]<class P>(P& policy, no_path) {
    std::apply([&](auto const&... x) { ((policy.*x.member).number(parameters++), ...); }, parameters_of<P>());
    std::apply([&](auto const&... x) { ((policy.*x.member).number(tables++), ...); }, tables_of<P>());
  });
}

/// A copy of an operator whose parameters and tables have their numbers, even if something was assigned to them.
template <class Op>
constexpr Op numbered(Op op) {
  detail::number(op);
  return op;
}

}  // namespace attune::detail
