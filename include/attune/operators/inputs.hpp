// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   forward(cpu{}, op, {.q = Q, .k = K, .v = V}, {.out = O})
//
// The inputs and outputs of an operator, derived from its policies: leaving out a field it needs and giving one it has no
// use for are both compile errors that name the field. The set of names is closed.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include <attune/core/lse.hpp>
#include <attune/core/storage.hpp>
#include <attune/core/tensor.hpp>
#include <attune/policies/contraction.hpp>

namespace attune {

namespace detail {

template <class...>
inline constexpr bool never = false;

/// Stands where an operator has no use for a field: anything put there is an error in words. The initialiser of a field that
/// was left out: fine where the operator has no use for it, else an error in words.
#define ATTUNE_INPUT(name, shape, why_superfluous, why_missing)                                         \
  struct no_##name {                                                                                    \
    constexpr no_##name() = default;                                                                    \
    template <class T>                                                                                  \
    constexpr no_##name(T const&) {                                                                     \
      static_assert(never<T>, "attune: input ." #name " is superfluous: " why_superfluous);             \
    }                                                                                                   \
  };                                                                                                    \
  template <class Op, class Field>                                                                      \
  constexpr Field omitted_##name() {                                                                    \
    static_assert(!Op::uses(field::name), "attune: input ." #name " " shape " is missing" why_missing); \
    return {};                                                                                          \
  }

ATTUNE_INPUT(q, "(batch, head, query, D)", "the kernel of this operator has no dot product and no distance of q and k", "")
ATTUNE_INPUT(k, "(batch, key head, key, D)", "the kernel of this operator has no dot product and no distance of q and k", "")
ATTUNE_INPUT(gate_q, "(batch, head, query, Dg)", "this operator has no score gate with its own projections",
             ": this operator has a score gate")
ATTUNE_INPUT(gate_k, "(batch, key head, key, Dg)", "this operator has no score gate with its own projections",
             ": this operator has a score gate")
ATTUNE_INPUT(scores, "(batch, head, query, key)",
             "the kernel of this operator computes its scores (kernel::given_scores takes them)",
             ": the kernel of this operator takes given scores")
ATTUNE_INPUT(gates, "(batch, head, query, key)", "this operator has no gate that is given (gate::given_softplus has)",
             ": the gate of this operator is given")
ATTUNE_INPUT(sort_q, "(batch, head, query, 1)",
             "the kernel of this operator has no scalar difference (kernel::scalar_sort has)",
             ": the kernel of this operator compares scalars")
ATTUNE_INPUT(sort_k, "(batch, key head, key, 1)",
             "the kernel of this operator has no scalar difference (kernel::scalar_sort has)",
             ": the kernel of this operator compares scalars")
ATTUNE_INPUT(position_q, "(batch, head, query, Dp)",
             "the kernel of this operator has no product of position projections (kernel::tupe has)",
             ": the kernel of this operator compares positions")
ATTUNE_INPUT(position_k, "(batch, key head, key, Dp)",
             "the kernel of this operator has no product of position projections (kernel::tupe has)",
             ": the kernel of this operator compares positions")
ATTUNE_INPUT(center, "(batch, head, query, axes)",
             "the kernel of this operator has no spatial prior (kernel::spatial_prior has)",
             ": the kernel of this operator has a spatial prior")
ATTUNE_INPUT(spread, "(batch, head, query, axes)",
             "the kernel of this operator has no spatial prior (kernel::spatial_prior has)",
             ": the kernel of this operator has a spatial prior")
ATTUNE_INPUT(place, "(batch, key head, key, axes)",
             "the kernel of this operator has no spatial prior (kernel::spatial_prior has)",
             ": the kernel of this operator has a spatial prior")
ATTUNE_INPUT(bias, "(batch, head, query, key)", "the kernel of this operator has no bias that is given (kernel::bias has)",
             ": the kernel of this operator adds a given bias")
ATTUNE_INPUT(key_bias, "(batch, key head, key, 1)", "the kernel of this operator has no bias per key (kernel::key_bias has)",
             ": the kernel of this operator adds a bias per key")
ATTUNE_INPUT(value_gate, "(batch, value head, key, Dv)", "this operator has no value gate (gate::sigmoid_value is one)",
             ": this operator has a value gate")
ATTUNE_INPUT(output_gate, "(batch, head, query, Dv or 1)", "this operator has no output gate (gate::sigmoid_output is one)",
             ": this operator has an output gate")
ATTUNE_INPUT(v0, "(1 or batch, 1 or head, 1 or query, Dv)", "the normalizer of this operator has no ground value",
             ": the normalizer of this operator has a ground value; attune::zeros<T>(Dv) stands for none")

#undef ATTUNE_INPUT

struct no_lse {
  constexpr no_lse() = default;
  template <class T>
  constexpr no_lse(T const&) {
    static_assert(never<T>, "attune: output .lse does not exist: the weights of this normalizer are not divided by a sum");
  }
};
struct no_threshold {
  constexpr no_threshold() = default;
  template <class T>
  constexpr no_threshold(T const&) {
    static_assert(never<T>, "attune: output .threshold does not exist: the normalizer of this operator has no candidate set");
  }
};
struct no_ground_weight {
  constexpr no_ground_weight() = default;
  template <class T>
  constexpr no_ground_weight(T const&) {
    static_assert(never<T>,
                  "attune: output .ground_weight does not exist: the normalizer of this operator has no ground and no sink");
  }
};

/// The type of a field: the executor's view where the operator uses it, else its stand-in.
template <class Op, field F, class View, class Unused>
using field_t = std::conditional_t<Op::uses(F), View, Unused>;

template <class Op, class View>
constexpr View missing_v() {
  static_assert(never<Op>, "attune: input .v (batch, value head, key, Dv) is missing");
  return {};
}
template <class Op, class View>
constexpr View missing_out() {
  static_assert(never<Op>, "attune: output .out (batch, head, query, Dv) is missing");
  return {};
}

}  // namespace detail

/// The inputs of an operator, in this order; View is the executor's read-only view.
///   q (B, H, Lq, D)  k (B, Hk, Lk, D)  v (B, Hv, Lk, Dv)      Hk and Hv divide H, independently: head h reads h Hk / H and h Hv / H
///   gate_q (B, H, Lq, Dg)  gate_k (B, H', Lk, Dg)             unscaled; every H' divides H, each for itself
///   scores, gates, bias (B, H, Lq, Lk)                        slots of invisible keys are never read into a result
///   sort_q (B, H, Lq, 1)  sort_k (B, H', Lk, 1)               one number per position
///   position_q (B, H, Lq, Dp)  position_k (B, H', Lk, Dp)     projections of positions
///   center, spread (B, H, Lq, A)  place (B, H', Lk, A)        A spatial axes
///   key_bias (B, H', Lk, 1)  value_gate (B, Hv, Lk, Dv)  output_gate (B, H, Lq, Dv | 1)
///   v0 (1|B, 1|H, 1|Lq, Dv)                                   the ground value
///   offset                                                    position of query 0 among the keys; Lk - Lq by default
template <class Op, class View>
struct inputs {
  [[no_unique_address]] detail::field_t<Op, field::q, View, detail::no_q> q =
      detail::omitted_q<Op, detail::field_t<Op, field::q, View, detail::no_q>>();
  [[no_unique_address]] detail::field_t<Op, field::k, View, detail::no_k> k =
      detail::omitted_k<Op, detail::field_t<Op, field::k, View, detail::no_k>>();
  View v = detail::missing_v<Op, View>();
  [[no_unique_address]] detail::field_t<Op, field::gate_q, View, detail::no_gate_q> gate_q =
      detail::omitted_gate_q<Op, detail::field_t<Op, field::gate_q, View, detail::no_gate_q>>();
  [[no_unique_address]] detail::field_t<Op, field::gate_k, View, detail::no_gate_k> gate_k =
      detail::omitted_gate_k<Op, detail::field_t<Op, field::gate_k, View, detail::no_gate_k>>();
  [[no_unique_address]] detail::field_t<Op, field::scores, View, detail::no_scores> scores =
      detail::omitted_scores<Op, detail::field_t<Op, field::scores, View, detail::no_scores>>();
  [[no_unique_address]] detail::field_t<Op, field::gates, View, detail::no_gates> gates =
      detail::omitted_gates<Op, detail::field_t<Op, field::gates, View, detail::no_gates>>();
  [[no_unique_address]] detail::field_t<Op, field::sort_q, View, detail::no_sort_q> sort_q =
      detail::omitted_sort_q<Op, detail::field_t<Op, field::sort_q, View, detail::no_sort_q>>();
  [[no_unique_address]] detail::field_t<Op, field::sort_k, View, detail::no_sort_k> sort_k =
      detail::omitted_sort_k<Op, detail::field_t<Op, field::sort_k, View, detail::no_sort_k>>();
  [[no_unique_address]] detail::field_t<Op, field::position_q, View, detail::no_position_q> position_q =
      detail::omitted_position_q<Op, detail::field_t<Op, field::position_q, View, detail::no_position_q>>();
  [[no_unique_address]] detail::field_t<Op, field::position_k, View, detail::no_position_k> position_k =
      detail::omitted_position_k<Op, detail::field_t<Op, field::position_k, View, detail::no_position_k>>();
  [[no_unique_address]] detail::field_t<Op, field::center, View, detail::no_center> center =
      detail::omitted_center<Op, detail::field_t<Op, field::center, View, detail::no_center>>();
  [[no_unique_address]] detail::field_t<Op, field::spread, View, detail::no_spread> spread =
      detail::omitted_spread<Op, detail::field_t<Op, field::spread, View, detail::no_spread>>();
  [[no_unique_address]] detail::field_t<Op, field::place, View, detail::no_place> place =
      detail::omitted_place<Op, detail::field_t<Op, field::place, View, detail::no_place>>();
  [[no_unique_address]] detail::field_t<Op, field::bias, View, detail::no_bias> bias =
      detail::omitted_bias<Op, detail::field_t<Op, field::bias, View, detail::no_bias>>();
  [[no_unique_address]] detail::field_t<Op, field::key_bias, View, detail::no_key_bias> key_bias =
      detail::omitted_key_bias<Op, detail::field_t<Op, field::key_bias, View, detail::no_key_bias>>();
  [[no_unique_address]] detail::field_t<Op, field::value_gate, View, detail::no_value_gate> value_gate =
      detail::omitted_value_gate<Op, detail::field_t<Op, field::value_gate, View, detail::no_value_gate>>();
  [[no_unique_address]] detail::field_t<Op, field::output_gate, View, detail::no_output_gate> output_gate =
      detail::omitted_output_gate<Op, detail::field_t<Op, field::output_gate, View, detail::no_output_gate>>();
  [[no_unique_address]] detail::field_t<Op, field::v0, View, detail::no_v0> v0 =
      detail::omitted_v0<Op, detail::field_t<Op, field::v0, View, detail::no_v0>>();
  std::optional<index_t> offset = std::nullopt;
};

/// The member of `inputs`, or of anything with the same names, that belongs to a field.
template <field F, class Inputs>
ATTUNE_HD constexpr auto& member(Inputs& in) {
  if constexpr (F == field::q)
    return in.q;
  else if constexpr (F == field::k)
    return in.k;
  else if constexpr (F == field::v)
    return in.v;
  else if constexpr (F == field::gate_q)
    return in.gate_q;
  else if constexpr (F == field::gate_k)
    return in.gate_k;
  else if constexpr (F == field::scores)
    return in.scores;
  else if constexpr (F == field::gates)
    return in.gates;
  else if constexpr (F == field::sort_q)
    return in.sort_q;
  else if constexpr (F == field::sort_k)
    return in.sort_k;
  else if constexpr (F == field::position_q)
    return in.position_q;
  else if constexpr (F == field::position_k)
    return in.position_k;
  else if constexpr (F == field::center)
    return in.center;
  else if constexpr (F == field::spread)
    return in.spread;
  else if constexpr (F == field::place)
    return in.place;
  else if constexpr (F == field::bias)
    return in.bias;
  else if constexpr (F == field::key_bias)
    return in.key_bias;
  else if constexpr (F == field::value_gate)
    return in.value_gate;
  else if constexpr (F == field::output_gate)
    return in.output_gate;
  else if constexpr (F == field::v0)
    return in.v0;
}

/// Inputs made by code that does not know the operator: make.template operator()<F>() is the view of each field it uses.
template <class Op, class View, class Make>
inputs<Op, View> make_inputs(Make const& make, std::optional<index_t> offset = std::nullopt) {
  [[maybe_unused]] auto const part = [&]<field F>() {
    if constexpr (Op::uses(F))
      return View(make.template operator()<F>());
    else
      return std::remove_cvref_t<decltype(member<F>(std::declval<inputs<Op, View>&>()))>{};
  };
  return [&]<int... F>(std::integer_sequence<int, F...>) {
    return inputs<Op, View>{part.template operator()<static_cast<field>(F)>()..., offset};
  }
  (std::make_integer_sequence<int, static_cast<int>(field::v0) + 1>{});
}

/// Calls visit.template operator()<F>() for every field, in the order of `inputs`.
template <class Visit>
constexpr void for_each_field(Visit const& visit) {
  visit.template operator()<field::q>();
  visit.template operator()<field::k>();
  visit.template operator()<field::v>();
  visit.template operator()<field::gate_q>();
  visit.template operator()<field::gate_k>();
  visit.template operator()<field::scores>();
  visit.template operator()<field::gates>();
  visit.template operator()<field::sort_q>();
  visit.template operator()<field::sort_k>();
  visit.template operator()<field::position_q>();
  visit.template operator()<field::position_k>();
  visit.template operator()<field::center>();
  visit.template operator()<field::spread>();
  visit.template operator()<field::place>();
  visit.template operator()<field::bias>();
  visit.template operator()<field::key_bias>();
  visit.template operator()<field::value_gate>();
  visit.template operator()<field::output_gate>();
  visit.template operator()<field::v0>();
}

constexpr char const* name_of(field f) {
  switch (f) {
    case field::q:
      return "q";
    case field::k:
      return "k";
    case field::v:
      return "v";
    case field::gate_q:
      return "gate_q";
    case field::gate_k:
      return "gate_k";
    case field::scores:
      return "scores";
    case field::gates:
      return "gates";
    case field::sort_q:
      return "sort_q";
    case field::sort_k:
      return "sort_k";
    case field::position_q:
      return "position_q";
    case field::position_k:
      return "position_k";
    case field::center:
      return "center";
    case field::spread:
      return "spread";
    case field::place:
      return "place";
    case field::bias:
      return "bias";
    case field::key_bias:
      return "key_bias";
    case field::value_gate:
      return "value_gate";
    case field::output_gate:
      return "output_gate";
    case field::v0:
      return "v0";
  }
  return "";
}

/// The outputs of an operator. `out` is required; the others are written if given.
///   out (B, H, Lq, Dv)   lse (B, H, Lq, 1), natural log, see core/lse.hpp   ground_weight (B, H, Lq, 1)
///   threshold (B, H, Lq, 1): of a normalizer with a candidate set, in the units that it documents; NaN where no key has weight
/// T is what `out` is stored in; numbers per row are stored in what is computed in.
template <class Op, class T>
struct outputs {
  using number = arithmetic_t<T>;
  tensor<T> out = detail::missing_out<Op, tensor<T>>();
  [[no_unique_address]] std::conditional_t<Op::has_lse, natural_lse<number>, detail::no_lse> lse = {};
  [[no_unique_address]] std::conditional_t<Op::has_ground_weight, tensor<number>, detail::no_ground_weight> ground_weight = {};
  [[no_unique_address]] std::conditional_t<Op::has_threshold, tensor<number>, detail::no_threshold> threshold = {};
};

/// Gradients of a scalar objective by the outputs: what a VJP starts from. One that is left out is zero.
template <class Op, class View>
struct cotangents {
  View out = {};
  [[no_unique_address]] std::conditional_t<Op::has_lse, View, detail::no_lse> lse = {};
  [[no_unique_address]] std::conditional_t<Op::has_ground_weight, View, detail::no_ground_weight> ground_weight = {};
};

}  // namespace attune
