// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   op = mixture(which, first, second)      head h runs the operator number which[h]
//
// Heads of one call that run different operators. Examples: the hybrid architecture of Scalar Sort, a few global heads
// among windowed ones, one entmax head. A composite has forward and
// VJP on every executor.
#pragma once

#include <tuple>
#include <utility>
#include <vector>

#include <attune/operators/attention.hpp>
#include <attune/operators/inputs.hpp>

namespace attune {

/// Several operators, and which of them each head runs. The inputs are the union of their inputs. Tensors and per-head
/// parameters have all H heads; an operator reads its own heads. Outputs: lse only if every operator has it;
/// ground_weight and threshold if any operator has it (0 and NaN in the heads of the others).
template <class... Ops>
struct mixture_operator {
  static_assert(sizeof...(Ops) >= 1, "attune: mixture() needs at least one operator");

  std::tuple<Ops...> operators;    ///< the operators, numbered from 0
  index_t const* which = nullptr;  ///< H numbers below sizeof...(Ops)
  index_t heads = 0;               ///< H: length of `which`

  /// Every operator has an lse.
  static constexpr bool has_lse = (Ops::has_lse && ...);
  /// Any operator has a ground weight.
  static constexpr bool has_ground_weight = (Ops::has_ground_weight || ...);
  /// Any operator has a threshold.
  static constexpr bool has_threshold = (Ops::has_threshold || ...);
  /// Whether any operator reads an input.
  static constexpr bool uses(field f) { return (Ops::uses(f) || ...); }
};

/// Head h runs operator number which[h]. `which` must outlive the operator.
template <class... Ops>
constexpr mixture_operator<Ops...> mixture(std::vector<index_t> const& which, Ops... operators) {
  for (index_t const n : which)
    if (n < 0 || n >= index_t(sizeof...(Ops)))
      throw error("mixture", "which", detail::text("the number ", n),
                  detail::text("numbers of the ", sizeof...(Ops), " operators, counted from 0"));
  return {{operators...}, which.data(), index_t(which.size())};
}
template <class... Ops>
mixture_operator<Ops...> mixture(std::vector<index_t>&&, Ops...) = delete;  // it would dangle

namespace detail {

/// The inputs of one operator among the inputs of a mixture.
template <class Op, class Mixture, class View>
inputs<Op, View> narrowed(inputs<Mixture, View> const& in) {
  return make_inputs<Op, View>([&]<field F>() { return member<F>(in); }, in.offset, in.offsets);
}

template <class Op, class Mixture, class T>
outputs<Op, T> narrowed(outputs<Mixture, T> const& to) {
  outputs<Op, T> own{.out = to.out};
  if constexpr (Op::has_lse && Mixture::has_lse) own.lse = to.lse;
  if constexpr (Op::has_ground_weight) own.ground_weight = to.ground_weight;
  if constexpr (Op::has_threshold) own.threshold = to.threshold;
  return own;
}

template <class Op, class Mixture, class View>
cotangents<Op, View> narrowed(cotangents<Mixture, View> const& d) {
  cotangents<Op, View> own{.out = d.out};
  if constexpr (Op::has_lse && Mixture::has_lse) own.lse = d.lse;
  if constexpr (Op::has_ground_weight) own.ground_weight = d.ground_weight;
  return own;
}

/// Calls visit(operator, number) for each operator of a mixture.
template <class... Ops, class Visit>
void for_each_operator(mixture_operator<Ops...> const& mixed, Visit const& visit) {
  [&]<std::size_t... N>(std::index_sequence<N...>) {
    (..., visit(std::get<N>(mixed.operators), index_t(N)));
  }(std::index_sequence_for<Ops...>{});
}

}  // namespace detail
}  // namespace attune
