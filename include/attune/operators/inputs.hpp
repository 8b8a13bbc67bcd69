// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   forward(cpu{}, op, {.q = Q, .k = K, .v = V}, {.out = O})
//
// The inputs and outputs of an operator, derived from its policies. Omitting a field that the operator needs is a
// compile error that names the field; so is giving one that it cannot use. The set of names is closed.
#pragma once

#include <optional>
#include <span>
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

// Two types for each field. no_NAME is the member type where an operator cannot use the field: giving a value is an
// error with a readable message. omitted_NAME is the initializer of a field that was omitted: allowed where the
// operator cannot use the field, else an error with a readable message.
#define ATTUNE_ROW(name, side, rows, heads, features, extents, superfluous, missing)                  \
  struct no_##name {                                                                                  \
    constexpr no_##name() = default;                                                                  \
    template <class T>                                                                                \
    constexpr no_##name(T const&) {                                                                   \
      static_assert(never<T>, "attune: input ." #name " is superfluous: " superfluous);               \
    }                                                                                                 \
  };                                                                                                  \
  template <class Op, class Field>                                                                    \
  constexpr Field omitted_##name() {                                                                  \
    static_assert(!Op::uses(field::name), "attune: input ." #name " " extents " is missing" missing); \
    return {};                                                                                        \
  }
ATTUNE_FIELDS(ATTUNE_ROW)
#undef ATTUNE_ROW

struct no_lse {
  constexpr no_lse() = default;
  template <class T>
  constexpr no_lse(T const&) {
    static_assert(never<T>,
                  "attune: output .lse does not exist: the weights of this normalizer are not divided by a sum");
  }
};
struct no_threshold {
  constexpr no_threshold() = default;
  template <class T>
  constexpr no_threshold(T const&) {
    static_assert(never<T>,
                  "attune: output .threshold does not exist: the normalizer of this operator has no candidate set");
  }
};
struct no_ground_weight {
  constexpr no_ground_weight() = default;
  template <class T>
  constexpr no_ground_weight(T const&) {
    static_assert(
        never<T>,
        "attune: output .ground_weight does not exist: the normalizer of this operator has no ground and no sink");
  }
};

/// The type of a field: the executor's view where the operator uses it, else the stand-in no_NAME.
template <class Op, field F, class View, class Unused>
using field_t = std::conditional_t<Op::uses(F), View, Unused>;

template <class Op, class View>
constexpr View missing_out() {
  static_assert(never<Op>, "attune: output .out (batch, head, query, Dv) is missing");
  return {};
}

}  // namespace detail

/// The inputs of an operator, in this order. View is the executor's read-only view.
///   q (B, H, Lq, D)  k (B, Hk, Lk, D)  v (B, Hv, Lk, Dv)
///       Hk and Hv each divide H: head h reads h Hk / H and h Hv / H
///   gate_q (B, H, Lq, Dg)  gate_k (B, H', Lk, Dg)             unscaled; each input has its own H', which divides H
///   scores, gates, bias (1|B, 1|H, 1|Lq, Lk)                  entries of invisible keys are never read into a result
///   sort_q (B, H, Lq, 1)  sort_k (B, H', Lk, 1)               one number per position
///   position_q (B, H, Lq, Dp)  position_k (B, H', Lk, Dp)     projections of positions
///   center, spread (B, H, Lq, A)  place (B, H', Lk, A)        A spatial axes
///   position_scores (1|B, 1|H, 1|Lq, P)                       a row of numbers, read at an index
///   key_bias (B, H', Lk, 1)  value_gate (1|B, 1|Hv, Lk, Dv)  output_gate (1|B, 1|H, 1|Lq, Dv | 1)
///   v0 (1|B, 1|H, 1|Lq, Dv)                                   the ground value
///   offset                                                    position of query 0 among the keys; Lk - Lq by default
///   offsets                                                   instead of offset: B of them, one per batch element
template <class Op, class View>
struct inputs {
#define ATTUNE_ROW(name, ...)                                      \
  detail::field_t<Op, field::name, View, detail::no_##name> name = \
      detail::omitted_##name<Op, detail::field_t<Op, field::name, View, detail::no_##name>>();
  ATTUNE_FIELDS(ATTUNE_ROW)
#undef ATTUNE_ROW
  std::optional<index_t> offset = std::nullopt;  ///< position of query 0 among the keys; by default Lk - Lq
  /// Instead of `offset`: one for each batch element, in memory that the executor reads. It must outlive the call and
  /// its results.
  std::optional<std::span<index_t const>> offsets = std::nullopt;
};

/// The member of `inputs`, or of any struct with the same member names, for a field.
template <field F, class Inputs>
ATTUNE_HD constexpr auto& member(Inputs& in) {
#define ATTUNE_ROW(name, ...)     \
  if constexpr (F == field::name) \
    return (in.name);             \
  else
  ATTUNE_FIELDS(ATTUNE_ROW)
#undef ATTUNE_ROW
  static_assert(detail::never<Inputs>, "attune: there is no such field");
}

/// Makes inputs in code that does not know the operator: make.template operator()<F>() returns the view of each field
/// that the operator uses.
template <class Op, class View, class Make>
inputs<Op, View> make_inputs(Make const& make, std::optional<index_t> offset = std::nullopt,
                             std::optional<std::span<index_t const>> offsets = std::nullopt) {
  [[maybe_unused]] auto const part = [&]<field F>() {
    if constexpr (Op::uses(F))
      return View(make.template operator()<F>());
    else
      return std::remove_cvref_t<decltype(member<F>(std::declval<inputs<Op, View>&>()))>{};
  };
  return [&]<int... F>(std::integer_sequence<int, F...>) {
    return inputs<Op, View> { part.template operator()<static_cast<field>(F)>()..., offset, offsets };
  }(std::make_integer_sequence<int, int(field_count)>{});
}

/// The outputs of an operator. `out` is required; the others are written if given.
///   out (B, H, Lq, Dv)   lse (B, H, Lq, 1), natural log, see core/lse.hpp   ground_weight (B, H, Lq, 1)
///   threshold (B, H, Lq, 1): of a normalizer with a candidate set, in the units that it documents; NaN where no key
///   has weight
/// T is the element type of `out`. Outputs with one number per row have the type that attune computes in.
template <class Op, class T>
struct outputs {
  using number = arithmetic_t<T>;                        ///< type of the outputs with one number per row
  tensor<T> out = detail::missing_out<Op, tensor<T>>();  ///< (B, H, Lq, Dv)
  /// The log-sum-exp of each row, (B, H, Lq, 1), natural log.
  std::conditional_t<Op::has_lse, natural_lse<number>, detail::no_lse> lse = {};
  /// The weight of the ground or of a sink in each row, (B, H, Lq, 1).
  std::conditional_t<Op::has_ground_weight, tensor<number>, detail::no_ground_weight> ground_weight = {};
  /// The threshold of each row, (B, H, Lq, 1).
  std::conditional_t<Op::has_threshold, tensor<number>, detail::no_threshold> threshold = {};
};

namespace detail {
/// The view of outputs with one number per row, next to an output that is viewed by View: floats next to 16 bits.
template <class View>
struct view_of_rows {
  using type = View;
};
template <storage_only S>
struct view_of_rows<tensor<S const>> {
  using type = tensor<arithmetic_t<S> const>;
};
}  // namespace detail

/// Gradients of a scalar objective by the outputs, from which a VJP starts. An omitted one is zero.
template <class Op, class View>
struct cotangents {
  using row_view = typename detail::view_of_rows<View>::type;  ///< floats where `out` has 16 bits
  View out = {};                                               ///< by out, (B, H, Lq, Dv)
  /// By lse, (B, H, Lq, 1).
  std::conditional_t<Op::has_lse, row_view, detail::no_lse> lse = {};
  /// By the ground weight, (B, H, Lq, 1).
  std::conditional_t<Op::has_ground_weight, row_view, detail::no_ground_weight> ground_weight = {};
};

}  // namespace attune
