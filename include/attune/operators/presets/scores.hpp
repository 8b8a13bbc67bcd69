// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Softmax with other scores: distances, positions, biases, caps.
#pragma once

#include <attune/operators/attention.hpp>
#include <attune/policies/kernel/alibi.hpp>
#include <attune/policies/kernel/bias.hpp>
#include <attune/policies/kernel/dot_product.hpp>
#include <attune/policies/kernel/elliptical.hpp>
#include <attune/policies/kernel/fourier_prior.hpp>
#include <attune/policies/kernel/inverse_distance.hpp>
#include <attune/policies/kernel/rbf.hpp>
#include <attune/policies/kernel/relative_bias.hpp>
#include <attune/policies/kernel/scalar.hpp>
#include <attune/policies/kernel/scaled_rbf.hpp>
#include <attune/policies/kernel/softcap.hpp>
#include <attune/policies/kernel/spatial_prior.hpp>
#include <attune/policies/kernel/transformer_xl.hpp>
#include <attune/policies/kernel/tupe.hpp>
#include <attune/policies/mask/none.hpp>
#include <attune/policies/normalizer/softmax.hpp>

namespace attune {

// ---- one number per position ---------------------------------------------------------------------------------------

/// softmax(-(q - k)^2 / tau) v, q and k one number per position. Scalar Sort, section 3.
template <class Mask = mask::none>
constexpr auto scalar_sort_attention(parameter tau, Mask m = {}) {
  return attention(kernel::scalar_sort{tau}, normalizer::softmax{}, m);
}

/// softmax(-|q - k| / tau) v, q and k one number per position. Ours: the Laplacian counterpart of Scalar Sort.
template <class Mask = mask::none>
constexpr auto scalar_laplacian_attention(parameter tau, Mask m = {}) {
  return attention(kernel::scalar_laplacian{tau}, normalizer::softmax{}, m);
}

/// softmax(<q, k> / sqrt(D) - (sort_q - sort_k)^2 / tau) v. Scalar Sort, the hybrid kernel.
template <class Mask = mask::none>
constexpr auto hybrid_attention(parameter tau, Mask m = {}) {
  return attention(kernel::dot_product{} + kernel::scalar_sort{tau}, normalizer::softmax{}, m);
}

// ---- distances -----------------------------------------------------------------------------------------------------

/// softmax(-|q - k|^2 / tau) v. RBF kernels, named by Scalar Sort, related work.
template <class Mask = mask::none>
constexpr auto rbf_attention(parameter tau, Mask m = {}) {
  return attention(kernel::rbf{tau}, normalizer::softmax{}, m);
}

/// softmax(-c |q - k|^2) v, c = 1 / sqrt(D) if it is not set. Kim et al. 2021.
template <class Mask = mask::none>
constexpr auto l2_attention(parameter scale = {}, Mask m = {}) {
  return attention(kernel::l2{scale}, normalizer::softmax{}, m);
}

/// softmax(g (2 <q, k> - |k|^2)) v: RBF without its row constant. Named by Scalar Sort, related work.
template <class Mask = mask::none>
constexpr auto scaled_rbf_attention(parameter gamma, Mask m = {}) {
  return attention(kernel::scaled_rbf{gamma}, normalizer::softmax{}, m);
}

/// Weights proportional to 1 / (eps + |q - k|^2). Scalar Sort, related work.
template <class Mask = mask::none>
constexpr auto inverse_distance_attention(parameter eps, Mask m = {}) {
  return attention(kernel::inverse_distance{eps}, normalizer::softmax{}, m);
}

/// softmax(-sum_d m_d (q_d - k_d)^2 / (2 sqrt(D))) v, the metric m a table. Nielsen et al. 2024.
template <class Mask = mask::none>
constexpr auto elliptical_attention(table metric, Mask m = {}) {
  return attention(kernel::elliptical{metric, {}}, normalizer::softmax{}, m);
}

/// softmax(sum_d m_d q_d k_d / sqrt(D)) v, the metric m a table. Scalar Sort, section 8, as printed there.
template <class Mask = mask::none>
constexpr auto bilinear_attention(table metric, Mask m = {}) {
  return attention(kernel::bilinear{metric, {}}, normalizer::softmax{}, m);
}

// ---- positions and biases ------------------------------------------------------------------------------------------

/// softmax(<q, k> / sqrt(D) + b_ij) v, b the input .bias.
template <class Mask = mask::none>
constexpr auto biased_attention(Mask m = {}) {
  return attention(kernel::dot_product{} + kernel::bias{}, normalizer::softmax{}, m);
}

/// softmax(<q, k> / sqrt(D) - slope |i + offset - j|) v. Press et al. 2022.
template <class Mask = mask::none>
constexpr auto alibi_attention(parameter slope, Mask m = {}) {
  return attention(kernel::dot_product{} + kernel::alibi{slope}, normalizer::softmax{}, m);
}

/// softmax(<q, k> / sqrt(D) + values[clamp(i + offset - j)]) v, 2 M + 1 values. Shaw et al. 2018; Swin.
template <class Mask = mask::none>
constexpr auto relative_bias_attention(table values, Mask m = {}) {
  return attention(kernel::dot_product{} + kernel::relative_bias{values}, normalizer::softmax{}, m);
}

/// softmax(<q, k> + values[bucket(j - i - offset)]) v: T5 has no 1 / sqrt(D). Raffel et al. 2020.
template <class Mask = mask::none>
constexpr auto t5_attention(kernel::t5_bias const& bias, Mask m = {}) {
  return attention(kernel::dot_product{1} + bias, normalizer::softmax{}, m);
}

/// softmax((<q, k> + <position_q, position_k>) / sqrt(2 D)) v. TUPE, Ke et al. 2021.
template <class Mask = mask::none>
constexpr auto tupe_attention(Mask m = {}) {
  return attention(kernel::tupe(), normalizer::softmax{}, m);
}

/// softmax((<q + u, k> + <q + w, r_n>) / sqrt(D)) v, n = i + offset - j; u, w, r tables. Dai et al. 2019.
template <class Mask = mask::none>
constexpr auto transformer_xl_attention(table u, table w, table r, Mask m = {}) {
  return attention(kernel::transformer_xl(u, w, r), normalizer::softmax{}, m);
}

/// softmax(<q, k> / sqrt(D) - sum_x ((place_jx - center_ix) / spread_ix)^2 / beta) v. SMCA, Gao et al. 2021.
template <class Mask = mask::none>
constexpr auto smca_attention(parameter beta, Mask m = {}) {
  return attention(kernel::dot_product{} + kernel::spatial_prior{beta}, normalizer::softmax{}, m);
}

/// Weights proportional to pi_ij e^(<q, k> / tau), the prior pi the input .bias. GOAT, named by Scalar Sort, related
/// work.
template <class Mask = mask::none>
constexpr auto goat_attention(parameter tau, Mask m = {}) {
  return attention(kernel::tempered_dot{tau} + kernel::log_prior{}, normalizer::softmax{}, m);
}

/// GOAT with a factorized prior: log pi_ij = sum_r a_r cos(w_r n) + b_r sin(w_r n) + key_bias_j, n = i + offset - j.
template <class Mask = mask::none>
constexpr auto goat_fourier_attention(parameter tau, kernel::fourier_prior const& prior, Mask m = {}) {
  return attention(kernel::tempered_dot{tau} + prior + kernel::key_bias{}, normalizer::softmax{}, m);
}

/// softmax(c tanh(<q, k> / (sqrt(D) c))) v. Gemma 2 (2024).
template <class Mask = mask::none>
constexpr auto softcap_attention(parameter cap, Mask m = {}) {
  return attention(kernel::dot_product{} | kernel::softcap{cap}, normalizer::softmax{}, m);
}

}  // namespace attune
