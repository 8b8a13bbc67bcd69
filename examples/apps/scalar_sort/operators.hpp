// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The model's own heads and the hybrid heads made of them, on the CPU executor: outputs, weights, gradients. Their
// templates are compiled once, in operators.cpp.
#pragma once

#include "stretch.hpp"

namespace scalar_sort {

/// What the model's own attention makes of a stretch: softmax(q k^T / sqrt(width)) v, (heads, count, width).
numbers model_outputs(stretch const& s);
/// Its weights, (heads, count, count).
numbers model_weights(stretch const& s);

/// softmax(q k^T / sqrt(width) - (sort_q - sort_k)^2 / tau), one tau per head, for all queries or every step-th:
/// (heads, count / step, count).
numbers hybrid_weights(stretch const& s, scalars const& at, numbers const& tau, every queries = {});

/// Gradients of a loss by the scalars and by each head's tau.
struct slopes {
  numbers q, k, tau;
};

/// How much of the model's output a hybrid head misses: |out - target|^2 / |target - its mean|^2 over the stretch, per
/// head; the gradients of the sum over heads go to `to`.
numbers unexplained(stretch const& s, scalars const& at, numbers const& tau, numbers const& target, slopes& to);

}  // namespace scalar_sort
