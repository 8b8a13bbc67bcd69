// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   op = fold(inner, {c0, c1, ...})          out_h = sum_c c_c out_{N h + c}       N heads of one operator
//   op = fold({c0, c1, ...}, first, second)  out_h = sum_c c_c out_h               operator number c
//
// Sums of heads with coefficients. Example: Differential Transformer (Ye 2024), softmax(q1 k1) v - lambda softmax(q2
// k2) v, is fold(softmax_attention(), {1.0, minus_lambda}). Coefficients are parameters and have gradients.
#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <vector>

#include <attune/operators/inputs.hpp>
#include <attune/operators/listing.hpp>
#include <attune/operators/mixture.hpp>

namespace attune {

namespace detail {
template <class>
inline constexpr bool is_attention = false;
template <class... P>
inline constexpr bool is_attention<attention_operator<P...>> = true;
}  // namespace detail

/// The sum of N terms with coefficients. A term is a head of the only operator, or one of N operators. H is the number
/// of heads of `out`.
///   one operator:             query inputs have N H heads; out_h = sum_c c_c out_{N h + c}. Per-head parameters,
///                             shared inputs and masks of the operator see these N H heads.
///   N operators:              all run H heads; inputs are the union of their inputs.
/// Coefficients are finite, and have the extents (1 or B, 1 or H, 1 or Lq, 1) of a parameter of H heads. A term whose
/// coefficient is 0 is still computed: 0 times NaN is NaN.
/// Outputs: out alone. lse, ground weight, threshold and statistics belong to a single normalizer.
template <std::size_t N, class... Ops>
struct fold_operator {
  /// The number of terms of a head of `out`.
  static constexpr index_t terms = index_t(N);
  /// Heads of the query inputs for each head of `out`.
  static constexpr index_t heads_each = sizeof...(Ops) == 1 ? terms : 1;

  std::tuple<Ops...> operators;           ///< one operator, or one per term
  std::array<parameter, N> coefficients;  ///< c_0, c_1, ...; their gradients are "fold.0", "fold.1", ...

  static constexpr bool has_lse = false;            ///< a fold has none
  static constexpr bool has_ground_weight = false;  ///< a fold has none
  static constexpr bool has_threshold = false;      ///< a fold has none
  /// Whether any operator reads an input.
  static constexpr bool uses(field f) { return (Ops::uses(f) || ...); }
};

namespace detail {
template <class>
inline constexpr bool is_fold = false;
template <std::size_t N, class... Ops>
inline constexpr bool is_fold<fold_operator<N, Ops...>> = true;

template <std::size_t N, class... Ops>
constexpr bool check_fold() {
  static_assert(N >= 1, "attune: fold() needs at least one coefficient, e.g. fold(op, {1.0, minus_lambda})");
  static_assert((is_attention<Ops> && ...),
                "attune: fold() takes operators of attention() or of presets. Mixtures and other folds cannot be "
                "folded: multiply the coefficients of nested folds yourself");
  return true;
}

/// `{}` in place of coefficients.
struct no_coefficients {};
}  // namespace detail

namespace detail {
template <std::size_t N, class... Ops>
struct count_of<fold_operator<N, Ops...>> {
  static constexpr int parameters = int(N) + count_of_all<Ops...>::parameters, tables = count_of_all<Ops...>::tables;
};
}  // namespace detail

/// An operator made by fold().
template <class Op>
concept Fold = detail::is_fold<std::remove_const_t<Op>>;

/// One operator: out_h = sum_c c_c out_{N h + c}. A coefficient is a number, per_head, per_query, a view or a
/// projection, with one value for each head of `out`. The arrays behind it must outlive the operator.
template <class Op, std::size_t N>
constexpr fold_operator<N, Op> fold(Op op, std::array<parameter, N> const& coefficients) {
  static_assert(detail::check_fold<N, Op>());
  return {{op}, coefficients};
}
/// The same with a list: fold(op, {1.0, minus_lambda}).
template <class Op, std::size_t N>
constexpr fold_operator<N, Op> fold(Op op, parameter const (&coefficients)[N]) {
  return fold(op, std::to_array(coefficients));
}
/// fold(op, {}) does not compile: the message says that a coefficient is missing.
template <class Op>
constexpr auto fold(Op op, detail::no_coefficients) {
  return fold(op, std::array<parameter, 0>{});
}

/// Several operators over the same heads: out_h = sum_c c_c out_h of operator number c.
template <std::size_t N, class... Ops>
  requires(sizeof...(Ops) >= 1)
constexpr fold_operator<N, Ops...> fold(std::array<parameter, N> const& coefficients, Ops... operators) {
  static_assert(N == sizeof...(Ops),
                "attune: fold() of several operators needs one coefficient per operator, e.g. fold({1.0, -0.5}, first, "
                "second)");
  static_assert(detail::check_fold<N, Ops...>());
  return {{operators...}, coefficients};
}
/// The same with a list: fold({1.0, -0.5}, first, second).
template <std::size_t N, class... Ops>
  requires(sizeof...(Ops) >= 1)
constexpr fold_operator<N, Ops...> fold(parameter const (&coefficients)[N], Ops... operators) {
  return fold(std::to_array(coefficients), operators...);
}

namespace detail {

// The member types of outputs that a fold does not have: giving a value is an error with a readable message.
#define ATTUNE_ROW(name)                                                                                        \
  struct no_folded_##name {                                                                                     \
    constexpr no_folded_##name() = default;                                                                     \
    template <class T>                                                                                          \
    constexpr no_folded_##name(T const&) {                                                                      \
      static_assert(never<T>, "attune: output ." #name                                                          \
                              " does not exist: a fold adds rows of several normalizers. Call forward() of an " \
                              "operator of the fold for its own");                                              \
    }                                                                                                           \
  }
ATTUNE_ROW(lse);
ATTUNE_ROW(ground_weight);
ATTUNE_ROW(threshold);
#undef ATTUNE_ROW

}  // namespace detail

/// The outputs of a fold: out (B, H, Lq, Dv) alone.
template <Fold Op, class T>
struct outputs<Op, T> {
  using number = arithmetic_t<T>;                        ///< type that attune computes in
  tensor<T> out = detail::missing_out<Op, tensor<T>>();  ///< (B, H, Lq, Dv)
  detail::no_folded_lse lse = {};                        ///< does not exist
  detail::no_folded_ground_weight ground_weight = {};    ///< does not exist
  detail::no_folded_threshold threshold = {};            ///< does not exist
};

/// The cotangent of a fold: by out alone.
template <Fold Op, class View>
struct cotangents<Op, View> {
  View out = {};                                       ///< by out, (B, H, Lq, Dv)
  detail::no_folded_lse lse = {};                      ///< does not exist
  detail::no_folded_ground_weight ground_weight = {};  ///< does not exist
};

namespace detail {

/// Query heads of the inputs of an operator for each head of its `out`.
template <class Op>
inline constexpr index_t heads_of_inputs = 1;
template <Fold Op>
inline constexpr index_t heads_of_inputs<Op> = Op::heads_each;

/// Calls visit(operator, number, prefix of the paths of its parameters) for each operator of a fold. The number is an
/// integral_constant. The only operator of a fold has no prefix.
template <std::size_t N, class... Ops, class Visit>
void for_each_operator(fold_operator<N, Ops...> const& folded, Visit const& visit) {
  [&]<std::size_t... K>(std::index_sequence<K...>) {
    (..., visit(std::get<K>(folded.operators), std::integral_constant<index_t, index_t(K)>{},
                sizeof...(Ops) == 1 ? std::string() : std::to_string(K) + "."));
  }(std::index_sequence_for<Ops...>{});
}

/// "fold.0", "fold.1", ...
template <Fold Op>
std::array<std::string, std::size_t(Op::terms)> const& names_of_coefficients() {
  static auto const names = [] {
    std::array<std::string, std::size_t(Op::terms)> x;
    for (std::size_t c = 0; c < x.size(); ++c) x[c] = std::to_string(c);
    return x;
  }();
  return names;
}

}  // namespace detail

/// The coefficients of a fold, then the parameters of its operators.
template <Fold Op>
std::vector<operator_parameter> listed_parameters(Op const& op) {
  std::vector<operator_parameter> all;
  for (std::size_t c = 0; c < op.coefficients.size(); ++c)
    all.push_back({&op.coefficients[c], detail::names_of_coefficients<Op>()[c].c_str(), domain::real, "fold."});
  detail::for_each_operator(op, [&](auto const& part, index_t, std::string const& prefix) {
    for (operator_parameter x : listed_parameters(part)) all.push_back((x.policy = prefix + x.policy, x));
  });
  return all;
}
/// The tables of the operators of a fold.
template <Fold Op>
std::vector<operator_table> listed_tables(Op const& op) {
  std::vector<operator_table> all;
  detail::for_each_operator(op, [&](auto const& part, index_t, std::string const& prefix) {
    for (operator_table x : listed_tables(part)) all.push_back((x.policy = prefix + x.policy, x));
  });
  return all;
}

}  // namespace attune
