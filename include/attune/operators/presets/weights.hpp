// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Other maps from logits to weights: affine-scaled, unnormalized, sparse, self-adjusted.
#pragma once

#include <attune/operators/attention.hpp>
#include <attune/policies/gate/sigmoid.hpp>
#include <attune/policies/kernel/dot_product.hpp>
#include <attune/policies/kernel/rbf.hpp>
#include <attune/policies/kernel/scalar.hpp>
#include <attune/policies/mask/none.hpp>
#include <attune/policies/normalizer/affine.hpp>
#include <attune/policies/normalizer/entmax.hpp>
#include <attune/policies/normalizer/generic.hpp>
#include <attune/policies/normalizer/self_adjusted.hpp>
#include <attune/policies/normalizer/sigmoid.hpp>
#include <attune/policies/normalizer/top_k.hpp>

namespace attune {

/// w = alpha p + (average - alpha) / N, p = softmax. alpha is usually a projection; average is usually the moving
/// average of core/moving_average.hpp. Affine-Scaled Attention, equations 6 to 9.
template <normalizer::affine_count Count = normalizer::affine_count::visible, class Mask = mask::none>
constexpr auto affine_scaled_attention(parameter alpha, parameter average, Mask m = {}) {
  return attention(kernel::dot_product{}, normalizer::affine<Count>{alpha, average}, m);
}

/// Affine-scaled attention with a sigmoid output gate: o' = o sigma(output_gate). Affine-Scaled Attention, equations 4
/// to 9.
template <normalizer::affine_count Count = normalizer::affine_count::visible, class Mask = mask::none>
constexpr auto affine_gated_attention(parameter alpha, parameter average, Mask m = {}) {
  return attention(kernel::dot_product{}, normalizer::affine<Count>{alpha, average}, gate::sigmoid_output{}, m);
}

/// How sliced ReLU attention turns r = max(sort_q - sort_k, 0) into weights.
enum class sliced_relu_form {
  sum,         ///< w = r
  mean,        ///< w = r / K
  centered,    ///< w = (r - mean r) / K
  normalized,  ///< w = r / sum r, 0 where that sum is 0
};

/// Sliced ReLU attention. Scalar Sort, related work, names it without a formula, so there are four forms.
template <sliced_relu_form Form, class Mask = mask::none>
constexpr auto sliced_relu_attention(Mask m = {}) {
  if constexpr (Form == sliced_relu_form::sum)
    return attention(kernel::scalar_difference{}, normalizer::relu{}, m);
  else if constexpr (Form == sliced_relu_form::mean)
    return attention(kernel::scalar_difference{}, normalizer::mean_relu{}, m);
  else if constexpr (Form == sliced_relu_form::centered)
    return attention(kernel::scalar_difference{}, normalizer::centered_relu{}, m);
  else
    return attention(kernel::scalar_difference{}, normalizer::normalized_relu{}, m);
}

/// w = e^(-|q - k|^2 / tau), not normalized. SOFT, Skyformer (2021), named by Scalar Sort, related work.
template <class Mask = mask::none>
constexpr auto gaussian_attention(parameter tau, Mask m = {}) {
  return attention(kernel::rbf{tau}, normalizer::exponential{}, m);
}

/// w = sigma(<q, k> / sqrt(D) + b), b = -log K if it is not set. Ramapuram et al. 2024.
template <class Mask = mask::none>
constexpr auto sigmoid_attention(parameter bias = {}, Mask m = {}) {
  return attention(kernel::dot_product{}, normalizer::sigmoid{bias}, m);
}

/// w = [a - tau]_+, sum w = 1. Martins & Astudillo 2016; "Limits of normalization", section 4.
template <class Mask = mask::none>
constexpr auto sparsemax_attention(Mask m = {}) {
  return attention(kernel::dot_product{}, normalizer::sparsemax{}, m);
}

/// w = [(alpha - 1) a - tau]_+^(1 / (alpha - 1)), sum w = 1; 1 <= alpha <= 4. Peters et al. 2019; Correia et al. 2019.
template <class Mask = mask::none>
constexpr auto entmax_attention(parameter alpha, Mask m = {}) {
  return attention(kernel::dot_product{}, normalizer::entmax{alpha}, m);
}

/// w = [a / 2 - tau]_+^2, sum w = 1. Peters et al. 2019.
template <class Mask = mask::none>
constexpr auto entmax15_attention(Mask m = {}) {
  return attention(kernel::dot_product{}, normalizer::entmax15{}, m);
}

/// Softmax over the k largest logits. "Limits of normalization", guideline 1.
template <class Mask = mask::none>
constexpr auto top_k_attention(index_t k, Mask m = {}) {
  return attention(kernel::dot_product{}, normalizer::top_k{k}, m);
}

/// w = (a - low) / (high - low) softmax(a), low and high by Form. Zheng et al. 2025; "Limits of normalization", section
/// 4.
template <normalizer::adjusted_form Form = normalizer::adjusted_form::with_zero,
          normalizer::adjusted_ends Ends = normalizer::adjusted_ends::differentiated, class Mask = mask::none>
constexpr auto self_adjusted_attention(Mask m = {}) {
  return attention(kernel::dot_product{}, normalizer::self_adjusted<Form, Ends>{}, m);
}

}  // namespace attune
