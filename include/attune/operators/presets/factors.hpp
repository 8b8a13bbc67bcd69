// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Softmax with a length scale, or with a gate of the score, the values or the output.
#pragma once

#include <attune/operators/attention.hpp>
#include <attune/policies/gate/sigmoid.hpp>
#include <attune/policies/gate/two_sided.hpp>
#include <attune/policies/kernel/dot_product.hpp>
#include <attune/policies/length_scale/log_n.hpp>
#include <attune/policies/length_scale/margin.hpp>
#include <attune/policies/length_scale/yarn.hpp>
#include <attune/policies/mask/none.hpp>
#include <attune/policies/normalizer/softmax.hpp>

namespace attune {

/// Softmax of a = s + softplus(alpha) log K (s - gamma): gamma changes only the lse. Principled Attention, section
/// 3.2.1.
template <class Mask = mask::none>
constexpr auto margin_attention(parameter alpha, parameter gamma, Mask m = {}) {
  return attention(kernel::dot_product{}, length_scale::margin{.alpha = alpha, .gamma = gamma}, normalizer::softmax{},
                   m);
}

/// Softmax of s log K / log(training_length). Su 2021.
template <class Mask = mask::none>
constexpr auto log_n_attention(parameter training_length, Mask m = {}) {
  return attention(kernel::dot_product{}, length_scale::log_n{training_length}, normalizer::softmax{}, m);
}

/// Softmax of s (0.1 log(extension) + 1)^2, extension = context length / training length. YaRN, Peng et al. 2024.
template <class Mask = mask::none>
constexpr auto yarn_attention(parameter extension, Mask m = {}) {
  return attention(kernel::dot_product{}, length_scale::yarn{extension}, normalizer::softmax{}, m);
}

/// Softmax of s + softplus(beta) tanh(<gate_q, gate_k> / 2). Ours: the design that Principled Attention, section 3.2.2,
/// names.
template <class Mask = mask::none>
constexpr auto two_sided_attention(parameter beta, Mask m = {}) {
  return attention(kernel::dot_product{}, gate::two_sided{beta}, normalizer::softmax{}, m);
}

/// Softmax with gated values v sigma(value_gate). Gated Sparse Attention, named by Scalar Sort, section 7.
template <class Mask = mask::none>
constexpr auto value_gated_attention(Mask m = {}) {
  return attention(kernel::dot_product{}, normalizer::softmax{}, gate::sigmoid_value{}, m);
}

/// Softmax with a gated output o sigma(output_gate). Affine-Scaled Attention, equations 4 and 5; Scalar Sort, section
/// 7.
template <class Mask = mask::none>
constexpr auto gated_attention(Mask m = {}) {
  return attention(kernel::dot_product{}, normalizer::softmax{}, gate::sigmoid_output{}, m);
}

}  // namespace attune
