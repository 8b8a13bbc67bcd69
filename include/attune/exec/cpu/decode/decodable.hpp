// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   if constexpr (exec_cpu::decodable<Op>) ...
//
// Which operators decode() supports. Apart from decode(), for those who only ask.
#pragma once

#include <attune/policies/concepts.hpp>
#include <attune/policies/ordered_sum.hpp>

namespace attune::exec_cpu {

/// True for operators that decode() supports: an O(1) state, no value gate and no ordered sum.
template <class Op>
inline constexpr bool decodable =
    Op::normalizer_is.family != row_family::sparse_support && !Op::has_value_gate && !has_ordered_sums<Op>;
/// Fails to compile, with a readable message, unless the operator is decodable.
template <class Op>
constexpr void require_decodable() {
  static_assert(!has_ordered_sums<Op>,
                "attune: decode() splits the keys of a row, and an ordered sum needs them in one piece: use forward()");
  static_assert(decodable<Op> || has_ordered_sums<Op>,
                "attune: decode() wants a normalizer with an O(1) state and no value gate: use forward()");
}

}  // namespace attune::exec_cpu
