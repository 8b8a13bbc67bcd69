// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Context-aware biases for length extrapolation (CABLE)
//   Veisi et al., Context-aware Biases for Length Extrapolation, 2025, arXiv 2503.08067
//   s_ij = c <q_i, k_j> + b_i - b_j,   b_i = -sum_{l <= i} softplus(<w, x_l>)
//
// The operator is that of fox.cpp: sort_q and sort_k both hold b. Your model computes b, one number per head and token.
#include "shared/variant.hpp"

using namespace attune;

// [snippet: variant]
auto const cable = attention(kernel::dot_product{} + kernel::scalar_difference{}, mask::causal{});
// [/snippet]

/// The drawn numbers of sort_k are the logits <w, x_l>. Queries hold the sum at their own position.
void sum_biases(variants::loop_inputs const& x) {
  for (index_t j = 0; j < x.keys; ++j) {
    double& b = x.of(field::sort_k, 0, 0, j);
    b = (j == 0 ? 0 : x.of(field::sort_k, 0, 0, j - 1)) - std::log1p(std::exp(b));
  }
  for (index_t h = 0; h < x.heads; ++h)
    for (index_t i = 0; i < x.queries; ++i) x.of(field::sort_q, 0, h, i) = x.of(field::sort_k, 0, h, i + x.offset);
}

int main() {
  return variants::run(cable,
                       [](auto const& x, auto const& row, variants::weights& w) {
                         auto const [b, h, i, position] = row;
                         std::fill(w.begin(), w.end(), -INFINITY);
                         for (index_t j = 0; j <= position; ++j) {
                           double const bias = x.of(field::sort_k, b, h, position) - x.of(field::sort_k, b, h, j);
                           w[std::size_t(j)] = x.scale() * x.dot(b, h, i, j) + bias;
                         }
                         variants::softmax(w);
                       },
                       {.model = sum_biases});
}
