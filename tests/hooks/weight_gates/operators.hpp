// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// One operator with a weight gate for each family of rows, and for each source of the gate's number.
#pragma once

#include <attune/policies.hpp>

#include "../../support/weight_gates.hpp"

namespace attune::test {

/// A random number, behind softmax.
inline auto gated_softmax() {
  return attention(kernel::dot_product{}, gate::dropout{.rate = 0.3, .seed = 7}, mask::causal{});
}
/// Positions alone, and a uniform share: the share of a key has the factor too.
inline auto gated_share() {
  return attention(kernel::dot_product{}, weight_decay{0.2}, normalizer::affine<>{.alpha = 0.7, .average = 0.4},
                   mask::causal{});
}
/// A contraction that a score gate reads too, with two sums of values.
inline auto gated_range() {
  return attention(kernel::dot_product{}, gate::softplus{0.3}, weight_sigmoid{0.8},
                   normalizer::self_adjusted<normalizer::adjusted_form::with_zero>{}, mask::causal{});
}
/// A contraction, over a candidate set, and an output gate.
inline auto gated_candidates() {
  return attention(kernel::dot_product{}, weight_sigmoid{0.8}, normalizer::sparsemax{}, gate::sigmoid_output{});
}
/// A ground, which has no factor. The kernel has no contraction, so logits take the first buffer.
inline auto gated_ground() {
  return attention(kernel::alibi{0.45}, weight_sigmoid{0.8}, normalizer::grounded{-0.7}, gate::sigmoid_output{});
}

}  // namespace attune::test
