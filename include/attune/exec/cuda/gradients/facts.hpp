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

/// The facts that the tiles of gradients may rely on.
template <class Op>
struct gradient_facts {
  using is = tile_facts<Op>;                                   ///< facts of the forward pass
  static constexpr int contractions = Op::contractions::size;  ///< of the operator
  /// Masses are e^(a - m), and what they leave to the ground is known too: no dual number.
  static constexpr bool fused = is::fused && (!is::is.ground_mass || is::fills);
  /// Logits are slope s + level of one product s, besides.
  static constexpr bool affine = fused && is::affine;
  /// A number whose directions are the contractions of a pair.
  using moving = dual<fast_float, contractions == 0 ? 1 : contractions>;
  using bound = bound_operator<Op, fast_float>;     ///< of a row, with constants
  using moving_bound = bound_operator<Op, moving>;  ///< of a row, with numbers that move
  /// A bound operator is made of numbers, so it can be given tangents of 0 without binding again.
  static constexpr bool made_of_numbers = has_logit_members<Op> && has_members<typename Op::normalizer_policy>;

  /// The bound operator, with constants that are dual numbers.
  ATTUNE_HD ATTUNE_INLINE static moving_bound with_directions(bound const& f) {
    return {still_members<moving, typename Op::kernel_policy>(f.kernel),
            still_members<moving, typename Op::length_scale_policy>(f.length_scale),
            still_members<moving, typename Op::gate_policy>(f.gate),
            still_members<moving, typename Op::normalizer_policy>(f.normalizer),
            {},
            {},
            moving(f.logit_shift),
            {}};
  }
};

/// A number per key that is read as it is. Its gradient is a sum over rows.
template <class C>
inline constexpr bool is_key_number = false;
template <contraction::Plain C>
inline constexpr bool is_key_number<C> = C::x::side == contraction::operand_side::key;
template <class>
inline constexpr int key_numbers_in = 0;
template <class... C>
inline constexpr int key_numbers_in<contraction::list<C...>> = (0 + ... + int(is_key_number<C>));
/// How many of the first N contractions are numbers per key.
template <int N, class... C>
ATTUNE_HD constexpr int key_numbers_before(contraction::list<C...>) {
  constexpr bool number[] = {is_key_number<C>..., false};
  int count = 0;
  for (int n = 0; n < N; ++n) count += number[n] ? 1 : 0;
  return count;
}

/// A contraction whose gradients tiles have: a product, unless it is a distance, or a number of a key.
template <class C>
inline constexpr bool is_pulled = (is_product<C> && !is_distance<C>) || is_key_number<C>;

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
/// Whether the tiles have the gradient by an input: v, and inputs that only products and numbers of keys read.
template <class Op>
constexpr bool has_gradient(field f) {
  using all = readers<typename Op::contractions>;
  return f == field::v || (all::pulled(f) > 0 && all::pulled(f) == all::all(f));
}

/// The reason why tiles do not have the gradients of an operator.
enum class gradient_refusal { none, number_type, family, gates, policies };
template <class Op, class E>
constexpr gradient_refusal refusal_of_gradients() {
  if (!storage_only<E>) return gradient_refusal::number_type;
  if (Op::normalizer_is.family != row_family::masses) return gradient_refusal::family;
  if (Op::has_weight_gate || Op::has_value_gate || Op::has_output_gate) return gradient_refusal::gates;
  if constexpr (Op::normalizer_is.family == row_family::masses)
    if (!gradient_facts<Op>::affine && !gradient_facts<Op>::made_of_numbers) return gradient_refusal::policies;
  return gradient_refusal::none;
}
/// Fails to compile, with advice, where the gradients of an operator stay on Thrust.
template <class Op, class E>
constexpr bool require_gradient_tiles() {
  constexpr gradient_refusal is = refusal_of_gradients<Op, E>();
  static_assert(is != gradient_refusal::number_type,
                "attune: cuda: gradients of tiles are of bfloat16 or float16: use thrust_on for float");
  static_assert(is != gradient_refusal::family,
                "attune: cuda: gradients of tiles need a normalizer of family masses: use thrust_on");
  static_assert(is != gradient_refusal::gates,
                "attune: cuda: gradients of tiles have no weight, value or output gate yet: use thrust_on");
  static_assert(is != gradient_refusal::policies,
                "attune: cuda: gradients of tiles need policies whose bind(row) returns numbers of the row's type and "
                "nothing else: use thrust_on");
  return true;
}

}  // namespace attune::exec_cuda
