// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The policies of the presets, word for word the rows of docs/operators.md: a test compares them.
#include "catalogue.hpp"

namespace attune::tool {

// clang-format off: one policy, one line
static policy_text const all[] = {
    {"kernel::dot_product", "c⟨q, k⟩", "scale c = 1/√D", "", "Vaswani 2017"},
    {"kernel::tempered_dot", "⟨q, k⟩/τ", "tau > 0", "uniform weights as τ → ∞; dot_product at τ = √D", "Why softmax; GOAT"},
    {"kernel::rbf", "−|q − k|²/τ", "tau > 0", "softmax of 2⟨q, k⟩/τ where all keys have one norm", "Scalar Sort, related work"},
    {"kernel::l2", "−c|q − k|²", "scale c = 1/√D", "rbf at τ = 1/c", "Kim 2021"},
    {"kernel::scaled_rbf", "γ(2⟨q, k⟩ − |k|²)", "gamma", "the weights of rbf at τ = 1/γ", "Scalar Sort, related work"},
    {"kernel::inverse_distance", "−log(ε + |q − k|²)", "eps > 0", "uniform weights as ε → ∞", "Scalar Sort, related work"},
    {"kernel::bilinear", "c Σ m_d q_d k_d", "scale; table metric", "dot_product at m = 1",
     "Scalar Sort, section 8, as printed"},
    {"kernel::elliptical", "−½c Σ m_d (q_d − k_d)²", "scale; table metric",
     "rbf at m = 1, τ = 2/c; bilinear where Σ m k² is constant", "Nielsen 2024"},
    {"kernel::scalar_sort", "−(q − k)²/τ", "tau > 0", "the nearest key as τ → 0, ties shared", "Scalar Sort, section 3"},
    {"kernel::scalar_laplacian", "−|q − k|/τ", "tau > 0", "as scalar_sort", "ours"},
    {"kernel::scalar_difference", "q − k", "", "", "sliced ReLU"},
    {"kernel::spatial_prior", "−Σ_x ((place − center)/spread)²/β", "beta > 0", "no prior as β → ∞; scalar_sort on one axis",
     "SMCA, Gao 2021"},
    {"kernel::bias", "b_ij, b_j", "", "no bias at 0", ""},
    {"kernel::key_bias", "b_ij, b_j", "", "no bias at 0", ""},
    {"kernel::log_prior", "log π_ij", "", "no prior where π is constant", "GOAT"},
    {"kernel::fourier_prior", "Σ_r a_r cos(ω_r n) + b_r sin(ω_r n)", "tables cosine sine frequency", "no prior at a = b = 0",
     "GOAT, factorised"},
    {"kernel::alibi", "−m|n|", "slope m", "no bias at m = 0", "Press 2022"},
    {"kernel::relative_bias", "values[clamp(n, −M, M) + M]", "table values, 2M + 1 rows", "no bias at 0", "Shaw 2018; Swin"},
    {"kernel::t5_bias", "values[bucket(−n)]", "table values; max_distance, bidirectional", "no bias at 0", "Raffel 2020"},
    {"kernel::tupe", "(⟨q, k⟩ + ⟨p^q, p^k⟩)/√(2D)", "", "dot product of scale 1/√(2D) at p = 0", "Ke 2021"},
    {"kernel::transformer_xl", "c(⟨q + u, k⟩ + ⟨q + w, r_n⟩)", "scale; tables u, w, r", "dot_product at u = r = 0", "Dai 2019"},
    {"kernel::softcap", "c tanh(s/c)", "cap > 0", "no cap as c → ∞", "Gemma 2"},
    {"length_scale::margin", "s + κ(s − γ), κ = softplus(α) log K", "alpha, gamma", "nothing at α = −∞ or K = 1",
     "Principled, 3.2.1"},
    {"length_scale::ssmax", "(ς log K + b) s", "scale ς, bias b", "nothing at ς = 0, b = 1", "Nakanishi 2025"},
    {"length_scale::log_n", "s log K / log n₀", "training_length n₀ > 1", "nothing at K = n₀", "Su 2021"},
    {"length_scale::yarn", "s (0.1 log e + 1)², e > 1", "extension e", "nothing at e ≤ 1", "Peng 2024"},
    {"gate::softplus", "a − softplus(β) softplus(−g)", "beta", "no gate at β = −∞ or g → ∞", "Principled, 3.2.2"},
    {"gate::two_sided", "a + softplus(β) tanh(g/2)", "beta", "no gate at β = −∞ or g = 0", "ours"},
    {"gate::sigmoid_value", "v σ(x), before the value sum", "", "no gate as x → ∞", "Gated Sparse Attention"},
    {"gate::sigmoid_output", "o σ(x), behind the ground value", "", "no gate as x → ∞", "Affine-Scaled, eq. 4, 5"},
    {"normalizer::softmax", "e^a / Σ e^a", "", "", "all"},
    {"normalizer::off_by_one", "e^a / (1 + Σ e^a)", "", "softmax as logits grow; sink at t = 0", "Affine-Scaled, eq. 2"},
    {"normalizer::sink", "e^a / (e^t + Σ e^a)", "logit t", "softmax at t = −∞", "Affine-Scaled, eq. 3"},
    {"normalizer::grounded", "e^a / Σ e^max(γ, a); the rest buys v0", "gamma", "softmax at γ = −∞, and where all a ≥ γ",
     "Principled, 3.2.3"},
    {"normalizer::affine", "αp + (ā − α)/N, p = softmax, N = K or Lk", "alpha, average ā", "softmax at α = ā = 1",
     "Affine-Scaled, eq. 6–9"},
    {"normalizer::sigmoid", "σ(a + b)", "bias b = −log K", "softmax's ratios where a + b ≪ 0", "Ramapuram 2024"},
    {"normalizer::exponential", "e^a", "", "", "SOFT, Skyformer"},
    {"normalizer::relu", "r = max(a, 0); r/K; r/Σr", "", "", "sliced ReLU"},
    {"normalizer::mean_relu", "r = max(a, 0); r/K; r/Σr", "", "", "sliced ReLU"},
    {"normalizer::normalized_relu", "r = max(a, 0); r/K; r/Σr", "", "", "sliced ReLU"},
    {"normalizer::centered_relu", "(F(a) − mean F)/K", "F", "mean_relu for values of sum 0", "sliced ReLU"},
    {"normalizer::self_adjusted", "(a − low)/(high − low) p", "form of low, high", "softmax where one key dominates",
     "Zheng 2025"},
    {"normalizer::sparsemax", "[a − τ]₊", "", "entmax at 2", "Martins 2016"},
    {"normalizer::entmax15", "[a/2 − τ]₊²", "", "entmax at 3/2", "Peters 2019"},
    {"normalizer::entmax", "[(α−1)a − τ]₊^(1/(α−1))", "alpha in [1, 4]", "softmax at α = 1, sparsemax at 2",
     "Peters 2019; Correia 2019"},
    {"normalizer::top_k", "softmax over the k largest", "k", "softmax where K ≤ k", "Limits, guideline 1"},
};
// clang-format on

std::span<policy_text const> policy_texts() { return all; }

}  // namespace attune::tool
