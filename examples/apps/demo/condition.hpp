// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   condition_i = (1 + A_i) V_i,   A_i = max_j |a_ij| + f_i max_j sum_d |c q_id k_jd| + level_i
//                                        + gate_i max_j (softplus(-g_ij) + sum_d |gq_id gk_jd|),
//                                            V_i = max(|v_jd|, |v0_d|)
//
// How far rounding may move a row: a weight is an exponential, so its relative error is the absolute error of its
// logit, which is eps times the largest number that took part in the logit. j runs over the visible keys; f_i is the
// length scale's factor, gate_i = softplus(beta_i), level_i = (1 + kappa_i) |gamma_i| or the sink's |logit|.
#pragma once

#include <vector>

#include "shared/layer.hpp"

namespace demo {

using namespace apps;  // what the programs share: examples/apps/shared

/// The maxima over visible keys that do not depend on the system.
struct row_magnitudes {
  double product = 0;       ///< sum_d |c q_d k_d|
  double gate_product = 0;  ///< sum_d |gq_d gk_d|
  double gate_penalty = 0;  ///< softplus(-g)
  double value = 0;         ///< |v_d|
};

/// The magnitudes of every row of a layer: with all keys visible, and causal.
struct magnitudes {
  index_t length = 0;
  std::vector<row_magnitudes> all, causal;  ///< (head, query)
  row_magnitudes const& at(bool is_causal, index_t h, index_t i) const {
    return (is_causal ? causal : all)[std::size_t(h * length + i)];
  }
};

magnitudes measure(layer const& l, int threads);

}  // namespace demo
