// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The named operators of the papers. The mask comes last and may be omitted. To ablate a paper, swap a policy. Presets
// with another score, other weights, or additions around softmax are in presets/{scores,weights,factors}.hpp.
#pragma once

#include <cmath>

#include <attune/operators/attention.hpp>
#include <attune/operators/presets/factors.hpp>
#include <attune/operators/presets/scores.hpp>
#include <attune/operators/presets/weights.hpp>
#include <attune/policies/gate/softplus.hpp>
#include <attune/policies/kernel/dot_product.hpp>
#include <attune/policies/length_scale/margin.hpp>
#include <attune/policies/length_scale/ssmax.hpp>
#include <attune/policies/mask/none.hpp>
#include <attune/policies/normalizer/grounded.hpp>
#include <attune/policies/normalizer/off_by_one.hpp>
#include <attune/policies/normalizer/sink.hpp>
#include <attune/policies/normalizer/softmax.hpp>

namespace attune {

/// softmax(q k^T / sqrt(D)) v. Vaswani et al. 2017.
template <class Mask = mask::none>
constexpr auto softmax_attention(Mask m = {}) {
  return attention(kernel::dot_product{}, normalizer::softmax{}, m);
}

/// e^a / (1 + sum e^a). Affine-Scaled Attention, equation 2.
template <class Mask = mask::none>
constexpr auto off_by_one_attention(Mask m = {}) {
  return attention(kernel::dot_product{}, normalizer::off_by_one{}, m);
}

/// A learned sink of logit t per head, without a value. Affine-Scaled Attention, equation 3; GPT-OSS.
template <class Mask = mask::none>
constexpr auto sink_attention(parameter logit, Mask m = {}) {
  return attention(kernel::dot_product{}, normalizer::sink{logit}, m);
}

/// Scalable-Softmax: logits (scale log K + bias) s. Nakanishi 2025.
template <class Mask = mask::none>
constexpr auto ssmax_attention(length_scale::ssmax factor, Mask m = {}) {
  return attention(kernel::dot_product{}, factor, normalizer::softmax{}, m);
}

/// The parameters of Principled Attention, each shared, per head or per query. -inf switches a component off: beta the
/// gate, alpha the margin amplification, gamma the ground.
struct principled_parameters {
  parameter alpha = 0,  ///< margin amplification: factor softplus(alpha)
      beta = 0,         ///< strength of the gate: factor softplus(beta)
      gamma = 0;        ///< ground level, in units of the logits
};

/// Principled Attention, section 3: a = s + softplus(alpha) log K (s - gamma) - softplus(beta) softplus(-g), weights
/// e^a / sum e^max(gamma, a); the missing mass weights v0. Two policies share the parameter gamma.
template <class Mask = mask::none>
constexpr auto principled_attention(principled_parameters const& p, Mask m = {}) {
  return attention(kernel::dot_product{}, length_scale::margin{.alpha = p.alpha, .gamma = p.gamma},
                   gate::softplus{p.beta}, normalizer::grounded{p.gamma}, m);
}

/// The bounds under which softmax_equivalent holds.
struct softmax_equivalent_bounds {
  double epsilon = 1e-6;     ///< |w - softmax| <= epsilon, w0 = 0
  double score_bound = 30;   ///< |s| <= score_bound
  double gate_bound = 30;    ///< |g| <= gate_bound
  double max_keys = 131072;  ///< K <= max_keys
};

/// Finite parameters at which Principled Attention is softmax attention within epsilon, for bounded scores. Use them as
/// the start of a training run; they are also the constructive form of the limit.
/// Proof: gamma is below every logit, so w0 = 0 exactly and the weights are softmax(a). Up to a row constant, a differs
/// from s by kappa s - b with |kappa s| <= kappa S and 0 <= b <= B = softplus(beta) softplus(G). This is a spread of at
/// most 2 kappa S + B, and softmax moves by at most a quarter of the spread of its logits. Each part gets epsilon; the
/// lse moves by at most kappa (S + |gamma|) + B.
inline principled_parameters softmax_equivalent(softmax_equivalent_bounds const& within) {
  auto const demand = [](bool ok, char const* name, double value, char const* expected) {
    if (!ok) throw error("softmax_equivalent", name, detail::text("the value ", value), expected);
  };
  demand(within.epsilon > 0 && within.epsilon <= 1, "epsilon", within.epsilon, "a number in (0, 1]");
  demand(within.score_bound >= 0 && std::isfinite(within.score_bound), "score_bound", within.score_bound,
         "a finite number >= 0");
  demand(within.gate_bound >= 0 && std::isfinite(within.gate_bound), "gate_bound", within.gate_bound,
         "a finite number >= 0");
  demand(within.max_keys >= 1 && std::isfinite(within.max_keys), "max_keys", within.max_keys, "a finite number >= 1");
  auto const softplus_inverse = [](double y) { return y + std::log(-std::expm1(-y)); };
  double const gamma = -(within.score_bound + 2);  // b <= epsilon <= 1 keeps every logit above it
  double const kappa = within.epsilon / (within.score_bound - gamma);
  double const log_keys = std::log(std::fmax(within.max_keys, 2));
  return {.alpha = softplus_inverse(kappa / log_keys),
          .beta = softplus_inverse(within.epsilon / math::softplus(within.gate_bound)),
          .gamma = gamma};
}

}  // namespace attune
