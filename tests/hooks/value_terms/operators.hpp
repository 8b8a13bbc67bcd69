// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// One operator with a value term for each family of rows. Values have 5 features.
#pragma once

#include "../../support/value_terms.hpp"
#include "../../support/weight_gates.hpp"

namespace attune::test {

inline constexpr index_t value_width = 5;

/// Rows shared by heads: 2 * 3 + 1 of them.
inline table shared_vectors() {
  static vectors_of_term const x({1, 1, 7, value_width});
  return x;
}
/// Rows of two heads.
inline table vectors_of_heads() {
  static vectors_of_term const x({1, 2, 5, value_width}, 2);
  return x;
}

/// Softmax, with the rows of Shaw et al.
inline auto term_softmax() {
  return attention(kernel::dot_product{}, value_term::relative{shared_vectors()}, mask::causal{});
}
/// A uniform share: each visible key adds its vector to it, too.
inline auto term_share() {
  return attention(kernel::dot_product{}, periodic_term{vectors_of_heads()},
                   normalizer::affine<>{.alpha = 0.7, .average = 0.4}, mask::causal{});
}
/// Two sums of values, and a weight gate.
inline auto term_range() {
  return attention(kernel::dot_product{}, weight_sigmoid{0.8}, value_term::relative{vectors_of_heads()},
                   normalizer::self_adjusted<normalizer::adjusted_form::with_zero>{}, mask::causal{});
}
/// A candidate set, and both other gates.
inline auto term_candidates() {
  return attention(kernel::dot_product{}, periodic_term{shared_vectors()}, normalizer::sparsemax{},
                   gate::sigmoid_value{}, gate::sigmoid_output{});
}
/// A ground and a window, so that few distances are seen.
inline auto term_ground() {
  return attention(kernel::alibi{0.45}, value_term::relative{vectors_of_heads()}, normalizer::grounded{-0.7},
                   gate::sigmoid_output{}, mask::causal_window{9});
}

}  // namespace attune::test
