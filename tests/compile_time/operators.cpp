// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Composition: any order gives one type, operators are constant expressions, and policies without members take no room.
#include <type_traits>

#include <attune/attune.hpp>

using namespace attune;

namespace {

constexpr kernel::dot_product k{};
constexpr length_scale::margin l{1, 2};
constexpr gate::softplus g{0.5};
constexpr normalizer::grounded n{2};
constexpr mask::causal m{};

template <class A, class B>
constexpr bool same(A const&, B const&) {
  return std::is_same_v<A, B>;
}

// Any order.
constexpr auto op = attention(k, l, g, n, m);
static_assert(same(op, attention(m, n, g, l, k)) && same(op, attention(n, k, m, l, g)) &&
              same(op, attention(g, m, k, n, l)));
static_assert(op.length_scale.gamma.at(0, 0, 0) == 2 && op.gate.beta.at(0, 0, 0) == 0.5 && !op.kernel.scale.is_set());
static_assert(attention(n, k).normalizer.gamma.at(0, 0, 0) == 2);

// Defaults.
using plain = attention_operator<kernel::dot_product, length_scale::none, gate::none, normalizer::softmax,
                                 gate::no_value_factor, gate::no_output_factor, mask::none>;
static_assert(same(attention(k), plain{}) && same(attention(m, k).mask, mask::causal{}));
static_assert(same(softmax_attention(), plain{}));

// What an operator uses.
template <class Op, class... F>
constexpr bool uses_only(Op const&, F... used) {
  for (field f : {field::q, field::k, field::v, field::gate_q, field::gate_k, field::scores, field::gates, field::v0})
    if (Op::uses(f) != (false || ... || (f == used))) return false;
  return true;
}
static_assert(uses_only(plain{}, field::q, field::k, field::v));
static_assert(uses_only(op, field::q, field::k, field::v, field::gate_q, field::gate_k, field::v0));
static_assert(uses_only(attention(kernel::given_scores{}, gate::given_softplus{}), field::v, field::scores,
                        field::gates));
static_assert(uses_only(attention(kernel::alibi{}, normalizer::valued_sink{}), field::v, field::v0));
static_assert(uses_only(attention(kernel::given_scores{} + k), field::q, field::k, field::v, field::scores));
static_assert(std::is_same_v<decltype(op)::contractions, contraction::list<contraction::dot, contraction::gate_dot>>);

// Outputs.
template <class N>
using with = decltype(attention(k, N{}));
static_assert(with<normalizer::softmax>::has_lse && !with<normalizer::softmax>::has_ground_weight);
static_assert(with<normalizer::grounded>::has_ground_weight && with<normalizer::sink>::has_ground_weight &&
              with<normalizer::off_by_one>::has_ground_weight);

// Values: trivially copyable; what has no members takes a byte. No [[no_unique_address]]: config.hpp says why.
static_assert(std::is_trivially_copyable_v<decltype(op)> && std::is_trivially_copyable_v<plain>);
static_assert(sizeof(plain) <= sizeof(parameter) + 8);   // the scale
static_assert(sizeof(op) <= 5 * sizeof(parameter) + 8);  // scale, alpha, gamma, beta, gamma
static_assert(sizeof(attention(kernel::given_scores{}, mask::causal{})) <= 9);
static_assert(sizeof(k + kernel::given_scores{}) <= sizeof(parameter) + 8);
static_assert(sizeof(parameter) <= 216);

// Bound to a row, too.
template <class Op>
using bound = decltype(std::declval<Op const&>().bind(std::declval<row<double> const&>()));
static_assert(sizeof(bound<decltype(attention(kernel::given_scores{}))>) <= 3 * sizeof(double));  // the row constant
static_assert(sizeof(bound<plain>) <= 4 * sizeof(double));                                        // and the scale

// Parameters of the presets are constants as well.
static_assert(principled_attention({.alpha = 1, .beta = 2, .gamma = 3}).gate.beta.at(0, 0, 0) == 2);
static_assert(sink_attention(1.5, mask::causal{}).normalizer.logit.at(0, 0, 0) == 1.5);

}  // namespace
