// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A description of each policy: the tables of docs/reference/operators.md (scripts/operator_tables) and what the
// command line says of a preset. Words may have Markdown's backticks. A new policy is a row here.
#include "../attune/catalogue.hpp"

namespace attune::tool {

// clang-format off: one policy, one line
//   role, name (as the page writes it), formula of the score, the logit or the weight, parameters and tables, inputs
//   besides .v, what it becomes at limits, what a part of a row must keep to be merged with others, source
static policy_text const all[] = {
    {"kernel", "dot_product", "c⟨q, k⟩", "`scale` c = 1/√D", "`.q .k`", "", "none", "Vaswani 2017"},
    {"kernel", "tempered_dot", "⟨q, k⟩/τ", "`tau` > 0", "`.q .k`", "uniform weights as τ → ∞; `dot_product` at τ = √D", "none", "Why softmax; GOAT"},
    {"kernel", "rbf", "−|q − k|²/τ", "`tau` > 0", "`.q .k`", "softmax of 2⟨q, k⟩/τ where all keys have one norm", "none", "Scalar Sort, related work"},
    {"kernel", "l2", "−c|q − k|²", "`scale` c = 1/√D", "`.q .k`", "`rbf` at τ = 1/c", "none", "Kim 2021"},
    {"kernel", "scaled_rbf", "γ(2⟨q, k⟩ − |k|²)", "`gamma`", "`.q .k`", "the weights of `rbf` at τ = 1/γ", "none", "Scalar Sort, related work"},
    {"kernel", "inverse_distance", "−log(ε + |q − k|²)", "`eps` > 0", "`.q .k`", "uniform weights as ε → ∞", "none", "Scalar Sort, related work"},
    {"kernel", "bilinear", "c Σ m_d q_d k_d", "`scale`; table `metric`", "`.q .k`", "`dot_product` at m = 1", "none", "Scalar Sort, section 8, as printed"},
    {"kernel", "elliptical", "−½c Σ m_d (q_d − k_d)²", "`scale`; table `metric`", "`.q .k`", "`rbf` at m = 1, τ = 2/c; `bilinear` where Σ m k² is constant", "none", "Nielsen 2024"},
    {"kernel", "scalar_sort", "−(q − k)²/τ", "`tau` > 0", "`.sort_q .sort_k`", "the nearest key as τ → 0, ties shared", "none", "Scalar Sort, section 3"},
    {"kernel", "scalar_laplacian", "−|q − k|/τ", "`tau` > 0", "`.sort_q .sort_k`", "as `scalar_sort`", "none", "ours"},
    {"kernel", "scalar_difference", "q − k", "", "`.sort_q .sort_k`", "", "none", "sliced ReLU"},
    {"kernel", "spatial_prior", "−Σ_x ((place − center)/spread)²/β", "`beta` > 0", "`.center .spread .place`", "no prior as β → ∞; `scalar_sort` on one axis", "none", "SMCA, Gao 2021"},
    {"kernel", "bias", "b_ij", "", "`.bias`", "no bias at 0", "none", ""},
    {"kernel", "key_bias", "b_j", "", "`.key_bias`", "no bias at 0", "none", ""},
    {"kernel", "log_prior", "log π_ij", "", "`.bias` holds π", "no prior where π is constant", "none", "GOAT"},
    {"kernel", "fourier_prior", "Σ_r a_r cos(ω_r n) + b_r sin(ω_r n)", "tables `cosine` `sine` `frequency`", "", "no prior at a = b = 0", "none", "GOAT, factorized"},
    {"kernel", "alibi", "−m|n|", "`slope` m", "", "no bias at m = 0", "none", "Press 2022"},
    {"kernel", "relative_bias", "values[clamp(n, −M, M) + M]", "table `values`, 2M + 1 rows", "", "no bias at 0", "none", "Shaw 2018; Swin"},
    {"kernel", "t5_bias", "values[bucket(−n)]", "table `values`; `max_distance`, `bidirectional`", "", "no bias at 0", "none", "Raffel 2020"},
    {"kernel", "tupe()", "(⟨q, k⟩ + ⟨p^q, p^k⟩)/√(2D)", "", "`.q .k .position_q .position_k`", "dot product of scale 1/√(2D) at p = 0", "none", "Ke 2021"},
    {"kernel", "transformer_xl(u, w, r)", "c(⟨q + u, k⟩ + ⟨q + w, r_n⟩)", "`scale`; tables u, w, r", "`.q .k`", "`dot_product` at u = r = 0", "none", "Dai 2019"},
    {"kernel", "rotary", "c⟨R(p_i) q, R(p_j) k⟩", "`scale`; `angles`, `layout`, `keys`", "`.q .k`", "`dot_product` at frequencies 0", "none", "Su 2021, RoFormer"},
    {"kernel", "elementwise<F>", "c Σ_d F::pair(q_d, k_d)", "`scale` c = 1", "`.q .k`", "whatever F says", "none", "yours"},
    {"kernel", "given_scores", "s_ij", "", "`.scores`", "", "none", "tests, analysis"},
    {"kernel", "softcap (map)", "c tanh(s/c)", "`cap` > 0", "", "no cap as c → ∞", "none", "Gemma 2"},
    {"length_scale", "margin", "s + κ(s − γ), κ = softplus(α) log K", "`alpha`, `gamma`", "", "no change at α = −∞ or K = 1", "none", "Principled, 3.2.1"},
    {"length_scale", "ssmax", "(ς log K + b) s", "`scale` ς, `bias` b", "", "no change at ς = 0, b = 1", "none", "Nakanishi 2025"},
    {"length_scale", "log_n", "s log K / log n₀", "`training_length` n₀ > 1", "", "no change at K = n₀", "none", "Su 2021"},
    {"length_scale", "yarn", "s (0.1 log e + 1)², e > 1", "`extension` e", "", "no change at e ≤ 1", "none", "Peng 2024"},
    {"gate", "softplus", "a − softplus(β) softplus(−g)", "`beta`", "`.gate_q .gate_k`", "no gate at β = −∞ or g → ∞", "none", "Principled, 3.2.2"},
    {"gate", "given_softplus", "a − softplus(β) softplus(−g)", "`beta`", "`.gates`", "no gate at β = −∞ or g → ∞", "none", "Principled, 3.2.2"},
    {"gate", "two_sided", "a + softplus(β) tanh(g/2)", "`beta`", "`.gate_q .gate_k`", "no gate at β = −∞ or g = 0", "none", "ours"},
    {"gate", "given_two_sided", "a + softplus(β) tanh(g/2)", "`beta`", "`.gates`", "no gate at β = −∞ or g = 0", "none", "ours"},
    {"gate", "sigmoid_value", "v σ(x), before the value sum", "", "`.value_gate`", "no gate as x → ∞", "none", "Gated Sparse Attention"},
    {"gate", "sigmoid_output", "o σ(x), after the ground value is added", "", "`.output_gate`, elementwise or headwise", "no gate as x → ∞", "none", "Affine-Scaled, eq. 4, 5"},
    {"gate", "dropout", "w f: f = 0 where u < rate, else 1/(1 − rate), after the normalizer", "`rate` in [0, 1), `seed`", "", "no gate at rate 0", "none", "Srivastava 2014"},
    {"value_term", "relative", "v + t[n], n = clamp(j − i − offset, −M, M) + M", "table `vectors`, 2 M + 1 rows", "", "no value term at t = 0", "none", "Shaw 2018"},
    {"normalizer", "softmax", "e^a / Σ e^a", "", "", "", "O(1): (m, z, Σ)", "all"},
    {"normalizer", "off_by_one", "e^a / (1 + Σ e^a)", "", "", "softmax as logits grow; `sink` at t = 0", "O(1)", "Affine-Scaled, eq. 2"},
    {"normalizer", "valued_off_by_one", "e^a / (1 + Σ e^a); the rest weights v0", "", "`.v0`", "softmax as logits grow; `sink` at t = 0", "O(1)", "Affine-Scaled, eq. 2"},
    {"normalizer", "sink", "e^a / (e^t + Σ e^a)", "`logit` t", "", "softmax at t = −∞", "O(1)", "Affine-Scaled, eq. 3"},
    {"normalizer", "valued_sink", "e^a / (e^t + Σ e^a); the rest weights v0", "`logit` t", "`.v0`", "softmax at t = −∞", "O(1)", "Affine-Scaled, eq. 3"},
    {"normalizer", "grounded", "e^a / Σ e^max(γ, a); the rest weights v0", "`gamma`", "`.v0`", "softmax at γ = −∞, and where all a ≥ γ", "O(1), and the ground mass", "Principled, 3.2.3"},
    {"normalizer", "affine<count>", "αp + (ā − α)/N, p = softmax, N = K or Lk", "`alpha`, `average` ā", "", "softmax at α = ā = 1", "O(1), and Σv", "Affine-Scaled, eq. 6–9"},
    {"normalizer", "free_affine<count>", "αp + β/N", "`alpha`, `beta`", "", "`affine` at β = ā − α", "O(1), and Σv", "Affine-Scaled, figure 1"},
    {"normalizer", "sigmoid", "σ(a + b)", "`bias` b = −log K", "", "the ratios of softmax where a + b ≪ 0", "O(1): Σ", "Ramapuram 2024"},
    {"normalizer", "generic<F, divisor>", "F(a), F(a)/K or F(a)/ΣF", "F", "", "softmax at F = exp", "O(1)", "Limits, eq. 3"},
    {"normalizer", "exponential", "e^a", "", "", "", "O(1)", "SOFT, Skyformer"},
    {"normalizer", "relu", "r = max(a, 0)", "", "", "", "O(1)", "sliced ReLU"},
    {"normalizer", "mean_relu", "r/K, r = max(a, 0)", "", "", "", "O(1)", "sliced ReLU"},
    {"normalizer", "normalized_relu", "r/Σr, r = max(a, 0)", "", "", "", "O(1)", "sliced ReLU"},
    {"normalizer", "centered<F>", "(F(a) − mean F)/K", "F", "", "`mean_relu` for values of sum 0", "O(1), and Σv", "sliced ReLU"},
    {"normalizer", "centered_relu", "(r − mean r)/K, r = max(a, 0)", "", "", "`mean_relu` for values of sum 0", "O(1), and Σv", "sliced ReLU"},
    {"normalizer", "self_adjusted<form, ends>", "(a − low)/(high − low) p", "form of low, high", "", "softmax where one key dominates", "O(1), both extremes and two value sums", "Zheng 2025"},
    {"normalizer", "sparsemax", "[a − τ]₊", "", "", "`entmax` at 2", "candidate set", "Martins 2016"},
    {"normalizer", "entmax15", "[a/2 − τ]₊²", "", "", "`entmax` at 3/2", "candidate set", "Peters 2019"},
    {"normalizer", "entmax", "[(α−1)a − τ]₊^(1/(α−1))", "`alpha` in [1, 4]", "", "softmax at α = 1, sparsemax at 2", "candidate set", "Peters 2019; Correia 2019"},
    {"normalizer", "top_k{k}", "softmax over the k largest", "k", "", "softmax where K ≤ k", "candidate set of k", "Limits, guideline 1"},
};
// clang-format on

std::span<policy_text const> policy_texts() { return all; }

}  // namespace attune::tool
