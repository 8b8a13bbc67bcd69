// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   x_ij = contraction of (query i, key j)
//
// The closed list of things an executor computes from tensors. A policy names the contraction it wants and turns its
// value into a score (or a gate) pointwise; nothing else about tensors reaches a policy.
#pragma once

#include <type_traits>

#include <attune/config.hpp>

namespace attune {

/// Every input tensor an operator can have.
enum class field { q, k, v, gate_q, gate_k, scores, gates, v0 };

namespace contraction {

/// No tensor at all: the policy works from positions.
struct none {
  static constexpr bool uses(field) { return false; }
};
/// <q_i, k_j>
struct dot {
  static constexpr bool uses(field f) { return f == field::q || f == field::k; }
};
/// <gate_q_i, gate_k_j>
struct gate_dot {
  static constexpr bool uses(field f) { return f == field::gate_q || f == field::gate_k; }
};
/// scores_ij, computed by the caller
struct given_scores {
  static constexpr bool uses(field f) { return f == field::scores; }
};
/// gates_ij, computed by the caller
struct given_gates {
  static constexpr bool uses(field f) { return f == field::gates; }
};

template <class C>
inline constexpr bool is_known = std::is_same_v<C, none> || std::is_same_v<C, dot> || std::is_same_v<C, gate_dot> ||
                                 std::is_same_v<C, given_scores> || std::is_same_v<C, given_gates>;

/// The contractions of an operator, in the order in which pointwise code receives their values.
template <class... C>
struct list {
  static constexpr int size = sizeof...(C);
  static constexpr bool uses([[maybe_unused]] field f) { return (false || ... || C::uses(f)); }
};
template <class A, class B>
struct join;
template <class... A, class... B>
struct join<list<A...>, list<B...>> {
  using type = list<A..., B...>;
};
/// A list of one, or of none for contraction::none.
template <class C>
using single = std::conditional_t<std::is_same_v<C, none>, list<>, list<C>>;

}  // namespace contraction
}  // namespace attune
