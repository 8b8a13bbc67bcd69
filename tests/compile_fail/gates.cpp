// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Score gates, value gates, output gates and weight gates.
#include "policies.hpp"

// expect-error misspelled_gate: GatePolicy: bind\(row\) must return an object with T gate
template <class T>
struct bound {
  T gates(T const& s, T const& g) const { return s + g; }
};
auto op = attention(kernel::dot_product{}, gate_of<bound, contraction::gate_dot>{});

// expect-error gate_of_none: a gate of contraction::none changes nothing
auto op = attention(kernel::dot_product{}, gate_of<gate_of_one, contraction::none>{});

// expect-error gate_of_position: a gate of contraction::none changes nothing
template <class T>
struct bound {
  T gate(T const& s, key<T> const& k) const { return s - k.position; }
};
auto op = attention(kernel::dot_product{}, gate_of<bound, contraction::none>{});

// expect-error uniform_score_gate: contraction::uniform is for weight gates alone
auto op = attention(kernel::dot_product{}, gate_of<gate_of_one, contraction::uniform>{});

// expect-error list_gate_of_too_few: GatePolicy with a list of contractions: bind\(row\) must return an object with T gate\(T const& scaled_score, T const& x
using mine = policy_of_list<policy_role::gate, gate_of_one, contraction::dot, contraction::scalar_difference>;
auto op = attention(kernel::dot_product{}, mine{});

// expect-error list_of_none: has an entry that is no contraction
using mine = policy_of_list<policy_role::gate, gate_of_one, contraction::none, contraction::dot>;
auto op = attention(kernel::dot_product{}, mine{});

// expect-error output_gate_without_factor: a value gate or output gate: bind\(row\) must return an object with T factor\(T const& x\) const
template <class T>
struct bound {
  T map(T const& x) const { return x; }
};
auto op = attention(kernel::dot_product{}, policy_of<policy_role::output_gate, bound>{});

// expect-error weight_gate_without_factor: a weight gate: bind\(row\) must return an object with T factor\(T const& contraction, attune::key<T> const& key\) const
template <class T>
struct bound {
  T factor(T const& u) const { return u; }
};
auto op = attention(kernel::dot_product{}, gate_of<bound, contraction::gate_dot, policy_role::weight_gate>{});

// expect-error weight_gate_without_seed: a weight gate with contraction::uniform: give it the member std::uint64_t seed
template <class T>
struct bound {
  T factor(T const& u, key<T> const&) const { return u; }
};
auto op = attention(kernel::dot_product{}, gate_of<bound, contraction::uniform, policy_role::weight_gate>{});

// expect-error branch_in_weight_gate: comparison_of_scores_is_not_a_bool_use_math_select
template <class T>
struct bound {
  T factor(T const& u, key<T> const&) const { return u > T(0) ? u : T(0); }
};
auto op = attention(kernel::dot_product{}, gate_of<bound, contraction::given_gates, policy_role::weight_gate>{});

// expect-no-error weight_gates
// With a random number, with a contraction, and with positions alone, in any order.
template <class T>
struct bound {
  T factor(T const& u, key<T> const&) const { return math::larger(u, T(0)); }
  T factor(key<T> const& k) const { return k.position; }
};
template <class Contraction>
struct mine : gate_of<bound, Contraction, policy_role::weight_gate> {
  std::uint64_t seed = 1;
  static constexpr auto parameters() { return std::tuple<>{}; }
};
auto a =
    attention(gate::dropout{.rate = 0.2, .seed = 3}, kernel::dot_product{}, gate::softplus{}, gate::sigmoid_value{});
auto b = attention(kernel::dot_product{}, mine<contraction::uniform>{}, mask::causal{});
auto c = attention(mine<contraction::given_gates>{}, kernel::dot_product{});
auto d = attention(kernel::dot_product{}, mine<contraction::none>{}, normalizer::sparsemax{});
static_assert(!decltype(a)::contractions::contains<contraction::uniform>);
static_assert(decltype(c)::uses(field::gates) && !decltype(d)::uses(field::gates));
