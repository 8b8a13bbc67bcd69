// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The buffers of a block of pairs, in tiles and in decode: one number per pair in each.
#pragma once

#include <algorithm>

#include <attune/exec/weight_gate.hpp>

namespace attune::exec_cpu {

template <class Op>
struct pair_planes {
  static constexpr bool adjusted = Op::normalizer_is.family == row_family::range_weighted;
  /// Whether the value sum of a uniform share is one per query: its keys have factors, or add numbers of the pair.
  static constexpr bool factored_share =
      (Op::has_weight_gate || Op::has_pair_values) && Op::normalizer_is.uniform_share;
  /// Whether the weights of a block have factors: 1 without a weight gate.
  static constexpr bool factors_weights = Op::has_weight_gate || factored_share;
  /// The buffer with the numbers that a weight gate reads: after everything that logits and weights overwrite. A
  /// uniform share needs the factors once more, so the buffer then exists for every weight gate.
  static constexpr int gate = (std::max)(adjusted ? 2 : 1, Op::logit_contractions);
  static constexpr bool has_gate = attune::detail::reads_numbers<Op> || factored_share;
  /// One buffer per contraction, and at least as many as the weights need.
  static constexpr int count = has_gate ? gate + 1 : (std::max)(adjusted ? 2 : 1, Op::contractions::size);
  /// The buffer of contraction n.
  static constexpr int of(int n) { return n < Op::logit_contractions ? n : gate; }
};

}  // namespace attune::exec_cpu
