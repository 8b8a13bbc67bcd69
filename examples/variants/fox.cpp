// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Forgetting attention (FoX)
//   Lin et al., Forgetting Transformer, 2025, arXiv 2503.02130
//   s_ij = c <q_i, k_j> + sum_{j < l <= i} log f_l
//
// The sum is F_i - F_j with the cumulative sum F of log f: sort_q and sort_k both hold F. Your model computes F and
// passes its gradient on to the forget gates.
#include "shared/variant.hpp"

using namespace attune;

// [snippet: variant]
auto const fox = attention(kernel::dot_product{} + kernel::scalar_difference{}, mask::causal{});
// [/snippet]

int main() {
  return variants::run(fox, [](auto const& x, auto const& row, variants::weights& w) {
    auto const [b, h, i, position] = row;
    std::fill(w.begin(), w.end(), -INFINITY);
    for (index_t j = 0; j <= position; ++j)
      w[std::size_t(j)] = x.scale() * x.dot(b, h, i, j) + x.of(field::sort_q, b, h, i) - x.of(field::sort_k, b, h, j);
    variants::softmax(w);
  });
}
