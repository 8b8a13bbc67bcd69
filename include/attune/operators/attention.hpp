// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   op = attention(kernel, length_scale, gate, normalizer, mask)      in any order; roles tell them apart
//
// The pipeline of every row:  contractions -> score -> length scale -> score gate -> normalizer -> weight gate
//                             -> value gate -> value term -> value sum -> ground value -> output gate
// Only the kernel is required. The defaults are no length scale, gates or value term, softmax and every key visible.
#pragma once

#include <attune/core/lse.hpp>
#include <attune/operators/numbering.hpp>
#include <attune/policies/concepts.hpp>
#include <attune/policies/diagnostics.hpp>
#include <attune/policies/gate/evaluation.hpp>
#include <attune/policies/gate/no_factor.hpp>
#include <attune/policies/gate/none.hpp>
#include <attune/policies/kernel/compose.hpp>
#include <attune/policies/length_scale/none.hpp>
#include <attune/policies/mask/none.hpp>
#include <attune/policies/normalizer/softmax.hpp>
#include <attune/policies/probe.hpp>
#include <attune/policies/value_term/none.hpp>

namespace attune {

/// An operator bound to a row, which pointwise code runs on. `Family` decides what happens to logits below
/// math::lowest_logit. In family masses the reference is never lower than that, so they get no mass; in the other
/// families they become -inf here.
template <class Kernel, class BoundKernel, class BoundLengthScale, class Gate, class BoundGate, row_family Family,
          class BoundNormalizer, class BoundValueGate, class BoundOutputGate, class T, class BoundWeightGate>
struct bound_attention {
  BoundKernel kernel;             ///< bound kernel
  BoundLengthScale length_scale;  ///< bound length scale
  BoundGate gate;                 ///< bound score gate
  BoundNormalizer normalizer;     ///< bound normalizer
  BoundValueGate value_gate;      ///< bound value gate
  BoundOutputGate output_gate;    ///< bound output gate
  T logit_shift;                  ///< row constant c: the true logit is logit() + c
  BoundWeightGate weight_gate;    ///< bound weight gate

  /// The score from the values of the operator's contractions.
  ATTUNE_HD ATTUNE_INLINE T score(T const* x, key<T> const& k) const {
    return kernel::evaluation<Kernel>::score(kernel, x, k);
  }

  /// The logit a' = a - c from the score and the values of the contractions.
  ATTUNE_HD ATTUNE_INLINE T logit_of_score(T const& s, [[maybe_unused]] T const* x) const {
    T const a = length_scale.scale(s);
    return counted(gate::evaluation<Gate>::gate(gate, a, x + kernel::evaluation<Kernel>::contractions::size));
  }
  /// The logit a' from the values of the contractions.
  ATTUNE_HD ATTUNE_INLINE T logit(T const* x, key<T> const& k) const { return logit_of_score(score(x, k), x); }

 private:
  ATTUNE_HD ATTUNE_INLINE static T counted(T const& a) {
    if constexpr (Family == row_family::masses)
      return a;
    else
      return math::select(a < math::lowest_logit<T>(), T(-math::infinity<T>()), a);
  }
};

/// An attention operator: policies and a mask, held by value.
template <class Kernel, class LengthScale, class Gate, class Normalizer, class ValueGate, class OutputGate, class Mask,
          class WeightGate = gate::no_weight_factor, class ValueTerm = value_term::none>
struct attention_operator {
  using kernel_policy = Kernel;             ///< type of `kernel`
  using length_scale_policy = LengthScale;  ///< type of `length_scale`
  using gate_policy = Gate;                 ///< type of `gate`
  using normalizer_policy = Normalizer;     ///< type of `normalizer`
  using value_gate_policy = ValueGate;      ///< type of `value_gate`
  using output_gate_policy = OutputGate;    ///< type of `output_gate`
  using mask_policy = Mask;                 ///< type of `mask`
  using weight_gate_policy = WeightGate;    ///< type of `weight_gate`
  using value_term_policy = ValueTerm;      ///< type of `value_term`
  /// List of the types of all policies except the mask, in the order of `each_policy`.
  template <template <class...> class List>
  using policies = List<Kernel, LengthScale, Gate, Normalizer, WeightGate, ValueGate, OutputGate, ValueTerm>;

  Kernel kernel;             ///< contractions to a score
  LengthScale length_scale;  ///< scales scores, for example by log K
  Gate gate;                 ///< score gate, applied after the length scale
  Normalizer normalizer;     ///< logits to weights
  ValueGate value_gate;      ///< factor of each value
  OutputGate output_gate;    ///< factor of each output
  Mask mask;                 ///< which keys each query sees
  WeightGate weight_gate;    ///< factor of what each key adds to the value sum
  ValueTerm value_term;      ///< added to each value

  /// The contractions that executors compute for every pair, in the order in which pointwise code receives the values.
  using contractions =
      typename contraction::join<typename contraction::join<typename kernel::evaluation<Kernel>::contractions,
                                                            typename gate::evaluation<Gate>::contractions>::type,
                                 contraction::single<typename WeightGate::contraction>>::type;
  /// The number of contractions that logits read. The weight gate's contraction, if it has one, has this number.
  static constexpr int logit_contractions =
      contractions::size - contraction::single<typename WeightGate::contraction>::size;
  /// The traits of the normalizer.
  static constexpr normalizer_traits normalizer_is = Normalizer::traits;
  /// Rows have a candidate set, and so an output `threshold`.
  static constexpr bool has_threshold = normalizer_is.family == row_family::sparse_support;
  /// Reads the input value_gate.
  static constexpr bool has_value_gate = !std::is_same_v<ValueGate, gate::no_value_factor>;
  /// Reads the input output_gate.
  static constexpr bool has_output_gate = !std::is_same_v<OutputGate, gate::no_output_factor>;
  /// Has a weight gate.
  static constexpr bool has_weight_gate = !std::is_same_v<WeightGate, gate::no_weight_factor>;
  /// Has a value term.
  static constexpr bool has_value_term = !std::is_same_v<ValueTerm, value_term::none>;
  /// A key adds other numbers to the value sums of other queries, apart from its weight.
  static constexpr bool has_pair_values = has_value_term;
  /// Rows add up values as they are, each times its weight.
  static constexpr bool has_plain_values = !has_value_gate && !has_weight_gate && !has_pair_values;
  /// A row has a log-sum-exp and a ground weight only if its masses are summed.
  static constexpr bool has_lse = normalizer_is.divided_by == divisor::sum && !has_threshold;
  /// Rows have an output ground_weight: the normalizer has a ground or a sink.
  static constexpr bool has_ground_weight = has_lse && (normalizer_is.ground_mass || normalizer_is.constant_mass);
  /// Whether the operator reads an input.
  ATTUNE_HD static constexpr bool uses(field f) {
    return f == field::v || contractions::uses(f) || (f == field::v0 && normalizer_is.ground_value) ||
           (f == field::value_gate && has_value_gate) || (f == field::output_gate && has_output_gate);
  }
  /// The policy that named contraction I and holds its tables.
  template <int Index>
  ATTUNE_HD constexpr auto const& owner() const {
    if constexpr (Index < kernel::evaluation<Kernel>::contractions::size)
      return kernel::evaluation<Kernel>::template owner<Index>(kernel);
    else if constexpr (Index < logit_contractions)
      return gate;
    else
      return weight_gate;
  }

  /// The part of a bound operator that named contraction I of the kernel.
  template <int Index, class Bound>
  ATTUNE_HD static constexpr auto const& part(Bound const& bound) {
    return kernel::evaluation<Kernel>::template part<Index>(bound.kernel);
  }

  /// Calls visit(policy, "kernel.") for every policy except the mask, in the order of the pipeline.
  template <class Op, class Visit>
  static constexpr void each_policy(Op& op, Visit const& visit) {
    visit(op.kernel, "kernel.");
    visit(op.length_scale, "length_scale.");
    visit(op.gate, "gate.");
    visit(op.normalizer, "normalizer.");
    if constexpr (has_weight_gate) visit(op.weight_gate, "weight_gate.");
    visit(op.value_gate, "value_gate.");
    visit(op.output_gate, "output_gate.");
    if constexpr (has_value_term) visit(op.value_term, "value_term.");
  }

  /// Binds every policy to a row. The other policies get the row constant of the length scale.
  template <class T>
  ATTUNE_HD auto bind(row<T> r) const {
    auto const scaled = length_scale.bind(r);
    if constexpr (LengthScale::traits.row_constant) r.logit_shift = scaled.row_constant();
    using bound =
        bound_attention<Kernel, decltype(kernel.bind(r)), decltype(length_scale.bind(r)), Gate, decltype(gate.bind(r)),
                        normalizer_is.family, decltype(normalizer.bind(r)), decltype(value_gate.bind(r)),
                        decltype(output_gate.bind(r)), T, decltype(weight_gate.bind(r))>;
    return bound{kernel.bind(r),      scaled,        gate.bind(r),       normalizer.bind(r), value_gate.bind(r),
                 output_gate.bind(r), r.logit_shift, weight_gate.bind(r)};
  }
};

namespace detail {

template <policy_role R, class... P>
inline constexpr int count_role = (0 + ... + int(P::role == R));

/// The policy of role R among p..., or the default.
template <policy_role R, class Default>
constexpr Default pick(Default d) {
  return d;
}
template <policy_role R, class Default, class P, class... Rest>
constexpr auto pick(Default d, P p, Rest... rest) {
  if constexpr (P::role == R)
    return p;
  else
    return pick<R>(d, rest...);
}

/// An ordered sum comes with a normalizer of family masses.
template <class Op>
inline constexpr bool orders_masses = !Op::contractions::has_derived || Op::normalizer_is.family == row_family::masses;
/// An operator with an ordered sum has no policy that reads tables in `bind`.
template <class Op>
inline constexpr bool orders_without_entries = !Op::contractions::has_derived || !has_entries<Op>;
/// The policies of an operator go together: attention() accepts them.
template <class Op>
inline constexpr bool compose =
    contraction::has_sources<typename Op::contractions>() && contraction::has_indices<typename Op::contractions>() &&
    contraction::one_order<typename Op::contractions> && orders_masses<Op> && orders_without_entries<Op>;

}  // namespace detail

/// Composes an operator from its policies, in any order. Everything but the kernel has a default. An error in a policy
/// is a compile error that names the policy's role and the expected signature.
template <class... P>
constexpr auto attention(P... policies) {
  constexpr bool all_complete = (detail::complete<P>() && ...);
  if constexpr (all_complete) {
    ((void)&detail::probe<P>, ...);  // instantiated, never run: a branch on a score must not compile
    using detail::count_role;
    constexpr int kernels = count_role<policy_role::kernel, P...>, maps = count_role<policy_role::score_map, P...>;
    constexpr int normalizers = count_role<policy_role::normalizer, P...>, gates = count_role<policy_role::gate, P...>;
    constexpr int length_scales = count_role<policy_role::length_scale, P...>,
                  masks = count_role<policy_role::mask, P...>;
    constexpr int value_gates = count_role<policy_role::value_gate, P...>;
    constexpr int output_gates = count_role<policy_role::output_gate, P...>;
    constexpr int weight_gates = count_role<policy_role::weight_gate, P...>;
    constexpr int value_terms = count_role<policy_role::value_term, P...>;
    static_assert(kernels != 0, "attune: attention() needs a KernelPolicy, e.g. attune::kernel::dot_product{}");
    static_assert(
        kernels <= 1,
        "attune: attention() takes one KernelPolicy, two were given: add them, e.g. dot_product{} + alibi{slope}");
    static_assert(maps == 0,
                  "attune: a score map is applied to the kernel, not given beside it: dot_product{} | softcap{30}");
    static_assert(normalizers <= 1, "attune: attention() takes one NormalizerPolicy, two were given");
    static_assert(gates <= 1, "attune: attention() takes one score gate, two were given");
    static_assert(value_gates <= 1, "attune: attention() takes one value gate, two were given");
    static_assert(output_gates <= 1, "attune: attention() takes one output gate, two were given");
    static_assert(weight_gates <= 1, "attune: attention() takes one weight gate, two were given");
    static_assert(value_terms <= 1, "attune: attention() takes one value term, two were given");
    static_assert(length_scales <= 1, "attune: attention() takes one LengthScalePolicy, two were given");
    static_assert(masks <= 1, "attune: attention() takes one mask, two were given: combine them with & or |");
    if constexpr (kernels == 1 && maps == 0 && normalizers <= 1 && gates <= 1 && value_gates <= 1 &&
                  output_gates <= 1 && weight_gates <= 1 && value_terms <= 1 && length_scales <= 1 && masks <= 1) {
      auto const k = detail::pick<policy_role::kernel>(0, policies...);
      auto const l = detail::pick<policy_role::length_scale>(length_scale::none{}, policies...);
      auto const g = detail::pick<policy_role::gate>(gate::none{}, policies...);
      auto const n = detail::pick<policy_role::normalizer>(normalizer::softmax{}, policies...);
      auto const v = detail::pick<policy_role::value_gate>(gate::no_value_factor{}, policies...);
      auto const o = detail::pick<policy_role::output_gate>(gate::no_output_factor{}, policies...);
      auto const m = detail::pick<policy_role::mask>(mask::none{}, policies...);
      auto const w = detail::pick<policy_role::weight_gate>(gate::no_weight_factor{}, policies...);
      auto const t = detail::pick<policy_role::value_term>(value_term::none{}, policies...);
      using op = attention_operator<
          std::remove_const_t<decltype(k)>, std::remove_const_t<decltype(l)>, std::remove_const_t<decltype(g)>,
          std::remove_const_t<decltype(n)>, std::remove_const_t<decltype(v)>, std::remove_const_t<decltype(o)>,
          std::remove_const_t<decltype(m)>, std::remove_const_t<decltype(w)>, std::remove_const_t<decltype(t)>>;
      using contractions = typename op::contractions;
      static_assert(contraction::has_sources<contractions>(),
                    "attune: an ordered sum adds a contraction of the same kernel: list it before the sum, e.g. "
                    "contraction::list<contraction::dot, contraction::later_sum<contraction::dot, F>>");
      static_assert(contraction::has_indices<contractions>(),
                    "attune: contraction::interpolated<S> reads a row at the index that the sum S of the same kernel "
                    "gives: list S before it. See docs/reference/policies.md#a-row-read-at-an-index");
      static_assert(contraction::one_order<contractions>,
                    "attune: an operator streams the keys of a row in one order: it cannot have sums over later keys "
                    "and sums over earlier keys");
      static_assert(detail::orders_masses<op>,
                    "attune: an ordered sum needs a normalizer of family masses: extreme logits and candidate sets do "
                    "not support it. See docs/reference/policies.md#ordered-sums");
      static_assert(detail::orders_without_entries<op>,
                    "attune: an operator with an ordered sum cannot read tables in bind. See "
                    "docs/reference/policies.md#tables-in-pointwise-code");
      return detail::numbered(op{k, l, g, n, v, o, m, w, t});
    }
  }
}

/// Which factors and masses the lse of an operator contains.
template <class K, class L, class G, class N, class... Rest>
  requires attention_operator<K, L, G, N, Rest...>::has_lse
constexpr lse_convention lse_convention_of(attention_operator<K, L, G, N, Rest...> const&) {
  return {.scale = true,
          .length_scale = !std::is_same_v<L, length_scale::none>,
          .gate = !std::is_same_v<G, gate::none>,
          .constant = N::traits.constant_mass,
          .ground = N::traits.ground_mass};
}

}  // namespace attune
