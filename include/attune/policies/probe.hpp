// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   if (a > T(0)) ...     must not compile, on any instruction set
//
// Pointwise code runs on SIMD batches, where a comparison has one answer per lane. On most instruction sets a branch on
// a comparison does not compile. On AVX-512 a mask register is an integer and converts to bool, so the branch would
// silently take one side for all lanes. For this reason every hook of every policy is instantiated once, and never run,
// with a scalar whose comparisons convert to nothing.
#pragma once

#include <attune/policies/concepts.hpp>
#include <attune/policies/gate/evaluation.hpp>
#include <attune/policies/kernel/compose.hpp>

namespace attune {

namespace detail {

/// The result of comparing scores. Compilers quote this name when somebody branches on a comparison.
struct comparison_of_scores_is_not_a_bool_use_math_select {
  using self = comparison_of_scores_is_not_a_bool_use_math_select;
  ATTUNE_HD friend self operator&(self, self) { return {}; }
  ATTUNE_HD friend self operator|(self, self) { return {}; }
  ATTUNE_HD friend self operator!(self) { return {}; }
};

/// A scalar with the operations of a batch and no values. Compilers quote this name when somebody calls std::exp.
struct scalar_that_only_functions_of_math_take {
  using self = scalar_that_only_functions_of_math_take;
  using mask = comparison_of_scores_is_not_a_bool_use_math_select;
  ATTUNE_HD scalar_that_only_functions_of_math_take() {}
  ATTUNE_HD scalar_that_only_functions_of_math_take(double) {}
  ATTUNE_HD friend self operator-(self const&) { return {}; }
  ATTUNE_HD friend self operator+(self const&, self const&) { return {}; }
  ATTUNE_HD friend self operator-(self const&, self const&) { return {}; }
  ATTUNE_HD friend self operator*(self const&, self const&) { return {}; }
  ATTUNE_HD friend self operator/(self const&, self const&) { return {}; }
  ATTUNE_HD friend mask operator<(self const&, self const&) { return {}; }
  ATTUNE_HD friend mask operator>(self const&, self const&) { return {}; }
  ATTUNE_HD friend mask operator<=(self const&, self const&) { return {}; }
  ATTUNE_HD friend mask operator>=(self const&, self const&) { return {}; }
  ATTUNE_HD friend mask operator==(self const&, self const&) { return {}; }
  ATTUNE_HD friend mask operator!=(self const&, self const&) { return {}; }
};
using probe_scalar = scalar_that_only_functions_of_math_take;

}  // namespace detail

template <>
struct scalar<detail::probe_scalar> {
  using T = detail::probe_scalar;
  using mask = T::mask;
  ATTUNE_HD static bool any(mask const&) { return false; }
  ATTUNE_HD static mask vanishes(T const&) { return {}; }
  ATTUNE_HD static T larger(T const&, T const&) { return {}; }
  ATTUNE_HD static T smaller(T const&, T const&) { return {}; }
  ATTUNE_HD static T select(mask const&, T const&, T const&) { return {}; }
  ATTUNE_HD static T infinity() { return {}; }
  ATTUNE_HD static T lowest() { return {}; }
  ATTUNE_HD static T abs(T const&) { return {}; }
  ATTUNE_HD static T exp(T const&) { return {}; }
  ATTUNE_HD static T expm1(T const&) { return {}; }
  ATTUNE_HD static T log(T const&) { return {}; }
  ATTUNE_HD static T log1p(T const&) { return {}; }
  ATTUNE_HD static T sqrt(T const&) { return {}; }
  ATTUNE_HD static T sin(T const&) { return {}; }
  ATTUNE_HD static T cos(T const&) { return {}; }
  ATTUNE_HD static T acos(T const&) { return {}; }
  ATTUNE_HD static T erf(T const&) { return {}; }
  ATTUNE_HD static T pow(T const&, T const&) { return {}; }
  ATTUNE_HD static T floor(T const&) { return {}; }
  ATTUNE_HD static T epsilon() { return {}; }
  ATTUNE_HD static T two_over_sqrt_pi() { return {}; }
  ATTUNE_HD static T exp_nonpositive(T const&) { return {}; }
  ATTUNE_HD static T log1p_unit(T const&) { return {}; }
  ATTUNE_HD static T softplus(T const&) { return {}; }
  ATTUNE_HD static T sigmoid(T const&) { return {}; }
  ATTUNE_HD static T tanh(T const&) { return {}; }
  ATTUNE_HD static T log1p_rate(T const&, T const&) { return {}; }
};

namespace detail {

/// Number: of the contraction among those that the policy P names. The map of an ordered sum gets the part of a sum of
/// kernels that named it.
template <class P, class C, int Number, class Bound>
void probe_contraction([[maybe_unused]] Bound const& bound) {
  using T = probe_scalar;
  if constexpr (contraction::is_ordered<C>)
    (void)contraction::mapped<C>(kernel::evaluation<P>::template part<Number>(bound), T{});
  else if constexpr (!contraction::Rotary<C> && !contraction::is_derived<C>)
    (void)C::term(T{}, T{}, T{}, T{});
}
template <class P, class Bound, class... C, int... Number>
void probe_contractions([[maybe_unused]] Bound const& bound, contraction::list<C...>,
                        std::integer_sequence<int, Number...>) {
  (..., probe_contraction<P, C, Number>(bound));
}

/// Calls every hook of a policy. It is instantiated, never run.
template <class P>
void probe(P const& policy, row<probe_scalar> const& r) {
  using T = probe_scalar;
  if constexpr (P::role != policy_role::mask && BindsARow<P>) {
    [[maybe_unused]] auto const bound = policy.bind(r);
    [[maybe_unused]] T const x;
    if constexpr (P::role == policy_role::kernel || P::role == policy_role::gate) {
      using named = contraction::named_by<P>;
      [[maybe_unused]] T const values[named::size + 1];
      probe_contractions<P>(bound, named{}, std::make_integer_sequence<int, named::size>{});
      if constexpr (P::role == policy_role::kernel)
        (void)kernel::evaluation<P>::score(bound, values, key<T>{x});
      else
        (void)gate::evaluation<P>::gate(bound, x, values);
    }
    if constexpr (P::role == policy_role::length_scale) (void)bound.scale(x);
    if constexpr (P::role == policy_role::value_gate || P::role == policy_role::output_gate) (void)bound.factor(x);
    if constexpr (P::role == policy_role::weight_gate) {
      using named = contraction::named_by<P>;
      probe_contractions<P>(bound, named{}, std::make_integer_sequence<int, named::size>{});
      if constexpr (std::is_same_v<typename P::contraction, contraction::none>)
        (void)bound.factor(key<T>{x});
      else
        (void)bound.factor(x, key<T>{x});
    }
    if constexpr (P::role == policy_role::normalizer) {
      if constexpr (P::traits.family == row_family::masses) {
        (void)bound.earned(x, x);
        if constexpr (P::traits.ground_mass) (void)bound.ground(x, x);
        if constexpr (P::traits.constant_mass) (void)bound.constant(x);
        if constexpr (P::traits.weight_factor && OffersWeightFactorOfSums<P>) (void)bound.weight_factor(x, x);
        if constexpr (P::traits.uniform_share) (void)bound.uniform_share(x, x);
      } else if constexpr (P::traits.family == row_family::range_weighted) {
        (void)bound.ends(x, x);
      } else {
        (void)bound.weight(candidate_threshold<T>{x, x, x, x}, x, key<T>{x});
      }
    }
  }
}

}  // namespace detail
}  // namespace attune
