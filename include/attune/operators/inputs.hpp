// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   forward(cpu{}, op, {.q = Q, .k = K, .v = V}, {.out = O})
//
// The inputs and outputs of an operator, derived from its policies: leaving out a field it needs and giving one it has no
// use for are both compile errors that name the field. The set of names is closed.
#pragma once

#include <optional>

#include <attune/core/lse.hpp>
#include <attune/core/tensor.hpp>
#include <attune/policies/contraction.hpp>

namespace attune {

namespace detail {

template <class...>
inline constexpr bool never = false;

/// Stands where an operator has no use for a field: anything put there is an error in words.
struct no_q {
  constexpr no_q() = default;
  template <class T>
  constexpr no_q(T const&) {
    static_assert(never<T>, "attune: input .q is superfluous: the kernel of this operator has no dot product");
  }
};
struct no_k {
  constexpr no_k() = default;
  template <class T>
  constexpr no_k(T const&) {
    static_assert(never<T>, "attune: input .k is superfluous: the kernel of this operator has no dot product");
  }
};
struct no_gate_q {
  constexpr no_gate_q() = default;
  template <class T>
  constexpr no_gate_q(T const&) {
    static_assert(never<T>, "attune: input .gate_q is superfluous: this operator has no score gate with its own projections");
  }
};
struct no_gate_k {
  constexpr no_gate_k() = default;
  template <class T>
  constexpr no_gate_k(T const&) {
    static_assert(never<T>, "attune: input .gate_k is superfluous: this operator has no score gate with its own projections");
  }
};
struct no_scores {
  constexpr no_scores() = default;
  template <class T>
  constexpr no_scores(T const&) {
    static_assert(never<T>,
                  "attune: input .scores is superfluous: the kernel of this operator computes its scores (kernel::given_scores "
                  "takes them)");
  }
};
struct no_gates {
  constexpr no_gates() = default;
  template <class T>
  constexpr no_gates(T const&) {
    static_assert(never<T>,
                  "attune: input .gates is superfluous: this operator has no gate that is given (gate::given_softplus has)");
  }
};
struct no_v0 {
  constexpr no_v0() = default;
  template <class T>
  constexpr no_v0(T const&) {
    static_assert(never<T>, "attune: input .v0 is superfluous: the normalizer of this operator has no ground value");
  }
};
struct no_lse {
  constexpr no_lse() = default;
  template <class T>
  constexpr no_lse(T const&) {
    static_assert(never<T>, "attune: output .lse does not exist: the weights of this normalizer are not divided by a sum");
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

/// Initialisers of fields that were left out: fine where the operator has no use for the field, else an error in words.
template <class Op, class Field>
constexpr Field omitted_q() {
  static_assert(!Op::uses(field::q), "attune: input .q (batch, head, query, D) is missing");
  return {};
}
template <class Op, class Field>
constexpr Field omitted_k() {
  static_assert(!Op::uses(field::k), "attune: input .k (batch, key head, key, D) is missing");
  return {};
}
template <class Op, class Field>
constexpr Field omitted_gate_q() {
  static_assert(!Op::uses(field::gate_q),
                "attune: input .gate_q (batch, head, query, Dg) is missing: this operator has a score gate");
  return {};
}
template <class Op, class Field>
constexpr Field omitted_gate_k() {
  static_assert(!Op::uses(field::gate_k),
                "attune: input .gate_k (batch, key head, key, Dg) is missing: this operator has a score gate");
  return {};
}
template <class Op, class Field>
constexpr Field omitted_scores() {
  static_assert(!Op::uses(field::scores),
                "attune: input .scores (batch, head, query, key) is missing: the kernel of this operator takes given scores");
  return {};
}
template <class Op, class Field>
constexpr Field omitted_gates() {
  static_assert(!Op::uses(field::gates),
                "attune: input .gates (batch, head, query, key) is missing: the gate of this operator is given");
  return {};
}
template <class Op, class Field>
constexpr Field omitted_v0() {
  static_assert(!Op::uses(field::v0),
                "attune: input .v0 (1 or batch, 1 or head, 1 or query, Dv) is missing: the normalizer of this operator has a "
                "ground value; attune::zeros<T>(Dv) stands for none");
  return {};
}

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
///   gate_q (B, H, Lq, Dg)  gate_k (B, Hk or H, Lk, Dg)        unscaled
///   scores, gates (B, H, Lq, Lk)                              slots of invisible keys are never read into a result
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
  [[no_unique_address]] detail::field_t<Op, field::v0, View, detail::no_v0> v0 =
      detail::omitted_v0<Op, detail::field_t<Op, field::v0, View, detail::no_v0>>();
  std::optional<index_t> offset = std::nullopt;
};

/// The outputs of an operator. `out` is required; the others are written if given.
///   out (B, H, Lq, Dv)   lse (B, H, Lq, 1), natural log, see core/lse.hpp   ground_weight (B, H, Lq, 1)
template <class Op, class T>
struct outputs {
  tensor<T> out = detail::missing_out<Op, tensor<T>>();
  [[no_unique_address]] std::conditional_t<Op::has_lse, natural_lse<T>, detail::no_lse> lse = {};
  [[no_unique_address]] std::conditional_t<Op::has_ground_weight, tensor<T>, detail::no_ground_weight> ground_weight = {};
};

}  // namespace attune
