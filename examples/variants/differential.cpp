// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Differential attention
//   Ye et al., Differential Transformer, 2024, arXiv 2410.05258
//   w_ij = softmax_j c <q1_i, k1_j> - lambda softmax_j c <q2_i, k2_j>
//
// q and k have two heads for each head of v: heads 2 h and 2 h + 1 are the terms of head h. Your model computes lambda
// from learned vectors, and passes on its gradient by minus_lambda. Then it normalizes the output of each head.
#include "shared/variant.hpp"

using namespace attune;

// [snippet: variant]
auto differential(parameter minus_lambda) { return fold(softmax_attention(mask::causal{}), {1.0, minus_lambda}); }
// [/snippet]

int main() {
  std::vector<double> const minus_lambda{-0.8, -0.3};
  return variants::run(
      differential(per_head(minus_lambda)),
      [&](auto const& x, auto const& row, variants::weights& w) {
        auto const [b, h, i, position] = row;
        for (index_t term = 0; term < 2; ++term) {
          variants::weights part(w.size(), -INFINITY);
          for (index_t j = 0; j <= position; ++j) {
            double dot = 0;
            for (index_t d = 0; d < x.width; ++d)
              dot += x.in_head(field::q, b, 2 * h + term, i, d) * x.in_head(field::k, b, 2 * h + term, j, d);
            part[std::size_t(j)] = x.scale() * dot;
          }
          variants::softmax(part);
          double const factor = term == 0 ? 1 : minus_lambda[std::size_t(h)];
          for (std::size_t j = 0; j < w.size(); ++j) w[j] += factor * part[j];
        }
      },
      {.compared = {.heads = 2, .queries = 70, .keys = 90, .width = 8, .key_heads = 4, .value_heads = 2}});
}
