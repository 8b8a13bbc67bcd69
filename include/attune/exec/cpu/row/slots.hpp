// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   row<D> r = moving_row<D>(facts, number, count, first)
//
// The parameters of an operator, as directions of dual numbers.
#pragma once

#include <attune/core/dual.hpp>
#include <attune/operators/numbering.hpp>

namespace attune::exec_cpu {

/// How many parameters of an operator move its logits, its normalizer and its gates.
template <class Op>
struct slots_of {
  template <class P>
  static constexpr int count = attune::detail::count_of<P>::parameters;
  static constexpr int logit =
      count<typename Op::kernel_policy> + count<typename Op::length_scale_policy> + count<typename Op::gate_policy>;
  static constexpr int normalizer = count<typename Op::normalizer_policy>;
  static constexpr int weight_gate = count<typename Op::weight_gate_policy>;
  static constexpr int value_gate = count<typename Op::value_gate_policy>;
  static constexpr int output_gate = count<typename Op::output_gate_policy>;
  /// The number of the first parameter of each.
  static constexpr int of_weight_gate = logit + normalizer, of_value_gate = of_weight_gate + weight_gate,
                       of_output_gate = of_value_gate + value_gate;
};

/// A row of constant dual numbers, except that the parameters [number, number + count) move, from direction `first` on.
template <class D, class T>
row<D> moving_row(row<T> const& r, int number, int count, int first) {
  return lifted(r, lift<D>{r.numbers, {number, count, first}});
}

}  // namespace attune::exec_cpu
