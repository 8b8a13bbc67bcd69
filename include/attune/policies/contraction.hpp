// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   x_ij = contraction of (query i, key j)
//
// The closed list of things an executor computes from tensors. A policy names the contraction it wants and turns its
// value into a score (or a gate) pointwise; nothing else about tensors reaches a policy. The one open door is
// `elementwise<F>`, any sum over features. Learned tensors that a contraction needs are tables of the policy that names it.
#pragma once

#include <type_traits>

#include <attune/config.hpp>
#include <attune/policies/fields.hpp>

namespace attune {

namespace contraction {

namespace detail {
template <field... F>
struct reads {
  ATTUNE_HD static constexpr bool uses([[maybe_unused]] field f) { return (false || ... || (f == F)); }
};
}  // namespace detail

/// No tensor at all: the policy works from positions.
struct none : detail::reads<> {};
/// <q_i, k_j>
struct dot : detail::reads<field::q, field::k> {};
/// |q_i - k_j|^2, from differences
struct squared_distance : detail::reads<field::q, field::k> {};
/// sum_d m_d q_id k_jd,   table `metric` (1|B, 1|H, 1, D) of the policy
struct metric_dot : detail::reads<field::q, field::k> {};
/// sum_d m_d (q_id - k_jd)^2,   table `metric`
struct metric_distance : detail::reads<field::q, field::k> {};
/// sum_d F::pair(q_id, k_jd) for a stateless F with `template <class T> static T pair(T const& q, T const& k)`: any sum over
/// features. Slower than the named ones, differentiated by duals.
template <class F>
struct elementwise : detail::reads<field::q, field::k> {};
/// <q_i + b, k_j>,   table `bias` (1|B, 1|H, 1, D)
struct biased_dot : detail::reads<field::q, field::k> {};
/// <q_i + b, r_n>, n = i + offset - j + floor(R / 2),   tables `bias` (1|B, 1|H, 1, D) and `relative` (1|B, 1|H, R, D)
struct relative_dot : detail::reads<field::q> {};
/// <gate_q_i, gate_k_j>
struct gate_dot : detail::reads<field::gate_q, field::gate_k> {};
/// <position_q_i, position_k_j>
struct position_dot : detail::reads<field::position_q, field::position_k> {};
/// sort_q_i - sort_k_j, one number each
struct scalar_difference : detail::reads<field::sort_q, field::sort_k> {};
/// sum_x ((place_jx - center_ix) / spread_ix)^2
struct spatial_distance : detail::reads<field::center, field::spread, field::place> {};
/// table `values` (1|B, 1|H, R, 1) at row `index(i + offset - j)` of the policy
struct gathered : detail::reads<> {};
/// sum_r a_r cos(w_r (i + offset - j)) + b_r sin(w_r (i + offset - j)),   tables `cosine`, `sine`, `frequency` (1|B, 1|H, R, 1)
struct fourier : detail::reads<> {};
/// bias_ij, computed by the caller
struct given_bias : detail::reads<field::bias> {};
/// key_bias_j, one number per key
struct given_key_bias : detail::reads<field::key_bias> {};
/// scores_ij, computed by the caller
struct given_scores : detail::reads<field::scores> {};
/// gates_ij, computed by the caller
struct given_gates : detail::reads<field::gates> {};

namespace detail {
template <class C, class... Known>
inline constexpr bool among = (false || ... || std::is_same_v<C, Known>);
template <class C>
inline constexpr bool is_elementwise = false;
template <class F>
inline constexpr bool is_elementwise<elementwise<F>> = true;
}  // namespace detail

template <class C>
inline constexpr bool is_known =
    detail::is_elementwise<C> || detail::among<C, none, dot, squared_distance, metric_dot, metric_distance, biased_dot,
                                               relative_dot, gate_dot, position_dot, scalar_difference, spatial_distance,
                                               gathered, fourier, given_bias, given_key_bias, given_scores, given_gates>;

/// The contractions of an operator, in the order in which pointwise code receives their values.
template <class... C>
struct list {
  static constexpr int size = sizeof...(C);
  ATTUNE_HD static constexpr bool uses([[maybe_unused]] field f) { return (false || ... || C::uses(f)); }
  template <class X>
  static constexpr bool contains = (false || ... || std::is_same_v<X, C>);
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
