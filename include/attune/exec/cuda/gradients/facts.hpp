// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   gradient_facts<Op>::fused, require_gradient_tiles<Op>()
//
// Facts that the tiles of gradients derive from an operator, and the operators that they accept.
#pragma once

#include <attune/core/dual.hpp>
#include <attune/exec/cuda/call.hpp>
#include <attune/exec/gradients.hpp>
#include <attune/operators/logit_members.hpp>

namespace attune::exec_cuda {

/// The facts that the tiles of gradients may rely on. F: the scalar that policies run on, tile_format<E>::scalar.
template <class Op, class F = fast_float>
struct gradient_facts {
  using is = tile_facts<Op>;                                   ///< facts of the forward pass
  static constexpr int contractions = Op::contractions::size;  ///< of the operator
  /// Masses are e^(a - m), and what they leave to the ground is known too: no dual number.
  static constexpr bool fused = is::fused && (!is::is.ground_mass || is::fills);
  /// Logits are slope s + level of one product s, besides.
  static constexpr bool affine = fused && is::affine;
  using bound = bound_operator<Op, F>;  ///< of a row, with constants
  /// A bound operator is made of numbers, so it can be given tangents without binding again.
  static constexpr bool made_of_numbers = has_logit_members<Op> && has_members<typename Op::normalizer_policy> &&
                                          has_members<typename Op::weight_gate_policy>;
};

/// The numbers that a tile of queries sums over the keys of a row, from which the gradients by parameters follow once
/// per row: by the members of bound policies, or by slope and level of affine logits.
template <class Op>
struct member_sums {
  using facts = gradient_facts<Op>;
  static constexpr int logit = [] {
    if constexpr (facts::affine)
      return 2;
    else
      return logit_member_count<Op>;
  }();  ///< gradients by what makes a logit
  /// Gradients by the normalizer. Of masses e^(a - m): by the level of the ground, if it has one.
  static constexpr int normalizer = [] {
    if constexpr (facts::fused)
      return facts::is::is.ground_mass ? 1 : 0;
    else
      return member_count<typename Op::normalizer_policy>;
  }();
  static constexpr int weight_gate = member_count<typename Op::weight_gate_policy>;  ///< gradients by the weight gate
  static constexpr int size = logit + normalizer + weight_gate;
};

using contraction::operand_side;

/// A table with a number for each distance, read as it is.
template <class C>
inline constexpr bool is_distance_table = false;
template <contraction::Plain C>
  requires(C::x::side == operand_side::table)
inline constexpr bool is_distance_table<C> = C::x::place == contraction::table_place::of_distance;

/// Whether tiles sum the gradients by a contraction over keys (query), over rows (key), or keep each (pair). The
/// contraction is a number per query, key or pair, a table of distances, or, on both sides, a distance or a scalar
/// difference.
template <operand_side Side, class C>
inline constexpr bool is_number_of =
    Side == operand_side::pair ? is_distance_table<C>
                               : is_distance<C> || std::is_same_v<C, contraction::scalar_difference>;
template <operand_side Side, contraction::Plain C>
  requires(C::x::side != operand_side::table)
inline constexpr bool is_number_of<Side, C> = C::x::side == Side;
/// The slope of a contraction by its number of that side.
template <operand_side Side, class C>
inline constexpr float number_slope =
    Side == operand_side::key && std::is_same_v<C, contraction::scalar_difference> ? -1.f : 1.f;
template <operand_side Side, class>
inline constexpr int numbers_in = 0;
template <operand_side Side, class... C>
inline constexpr int numbers_in<Side, contraction::list<C...>> = (0 + ... + int(is_number_of<Side, C>));
/// How many of the first N contractions are such numbers.
template <operand_side Side, int N, class... C>
ATTUNE_HD constexpr int numbers_before(contraction::list<C...>) {
  constexpr bool number[] = {is_number_of<Side, C>..., false};
  int count = 0;
  for (int n = 0; n < N; ++n) count += number[n] ? 1 : 0;
  return count;
}

/// A contraction whose gradients by inputs tiles have: a product or a number.
template <class C>
inline constexpr bool is_pulled = is_product<C> || is_number_of<operand_side::key, C> ||
                                  is_number_of<operand_side::query, C> || is_number_of<operand_side::pair, C>;

/// How many contractions read a field, and of how many of them tiles have the gradient.
template <class>
struct readers;
template <class... C>
struct readers<contraction::list<C...>> {
  template <class X>
  static constexpr bool reads(field f) {
    if constexpr (X::side == contraction::operand_side::query || X::side == contraction::operand_side::key ||
                  X::side == contraction::operand_side::pair)
      return X::of == f;
    else
      return false;
  }
  static constexpr int all(field f) {
    return (0 + ... + int(reads<typename C::x>(f) || reads<typename C::y>(f) || reads<typename C::z>(f)));
  }
  static constexpr int pulled(field f) {
    return (0 + ... + int(is_pulled<C> && (reads<typename C::x>(f) || reads<typename C::y>(f))));
  }
};
/// Whether the tiles have the gradient by an input: values, gates, and inputs that only products and numbers read.
template <class Op>
constexpr bool has_gradient(field f) {
  using all = readers<typename Op::contractions>;
  if (!Op::uses(f)) return false;
  if (f == field::v || f == field::v0 || f == field::value_gate || f == field::output_gate) return true;
  return all::pulled(f) > 0 && all::pulled(f) == all::all(f);
}
/// Whether the tiles have the gradients by parameters: a value gate has none.
template <class Op>
inline constexpr bool has_parameter_gradients =
    parameter_count<Op> > 0 && attune::detail::count_of<typename Op::value_gate_policy>::parameters == 0;

/// The reason why tiles do not have the gradients of an operator.
enum class gradient_refusal { none, number_type, family, policies };
template <class Op, class E>
constexpr gradient_refusal refusal_of_gradients() {
  if (!storage_only<E> && !std::is_same_v<E, float>) return gradient_refusal::number_type;
  if (Op::normalizer_is.family != row_family::masses) return gradient_refusal::family;
  if constexpr (Op::normalizer_is.family == row_family::masses)
    if (!gradient_facts<Op>::affine && !gradient_facts<Op>::made_of_numbers) return gradient_refusal::policies;
  return gradient_refusal::none;
}
/// Fails to compile, with advice, where the gradients of an operator stay on Thrust.
template <class Op, class E>
constexpr bool require_gradient_tiles() {
  constexpr gradient_refusal is = refusal_of_gradients<Op, E>();
  static_assert(is != gradient_refusal::number_type,
                "attune: cuda: gradients of tiles are of float, bfloat16 or float16: use thrust_on");
  static_assert(is != gradient_refusal::family,
                "attune: cuda: gradients of tiles need a normalizer of family masses: use thrust_on");
  static_assert(is != gradient_refusal::policies,
                "attune: cuda: gradients of tiles need policies whose bind(row) returns numbers of the row's type and "
                "nothing else: use thrust_on");
  return true;
}

}  // namespace attune::exec_cuda
