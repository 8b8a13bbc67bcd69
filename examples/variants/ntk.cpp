// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Rotary positions, NTK-aware
//   bloc97, NTK-Aware Scaled RoPE, 2023, as in Peng et al., YaRN, 2023, arXiv 2309.00071
//   s_ij = c <R(i) q_i, R(j) k_j>,   R(p) turns pair r of the features by p (10000 s^(D / (D - 2)))^(-2r / D)
//
// s is the length of the context, divided by the length in training.
#include "shared/turned.hpp"

using namespace attune;

// [snippet: variant]
rotary_angles<double> ntk_angles(index_t width, double scale, index_t length) {
  return {rotary_frequencies::ntk(width, scale), length};
}
auto ntk(rotary_angles<double> const& angles) { return attention(kernel::rotary{angles}, mask::causal{}); }
// [/snippet]

int main() {
  double const scale = 4;
  auto angles = ntk_angles(8, scale, 1);
  return variants::run(
      [&](testing::problem_extents const& e) { return ntk(angles = ntk_angles(e.width, scale, e.keys)); },
      [&](auto const& x, auto const& row, variants::weights& w) {
        double const d = double(x.width), base = 10000 * std::pow(scale, d / (d - 2));
        std::vector<double> frequencies;
        for (index_t r = 0; r < x.width / 2; ++r) frequencies.push_back(1 / std::pow(base, 2 * double(r) / d));
        std::fill(w.begin(), w.end(), -INFINITY);
        for (index_t j = 0; j <= row.position; ++j)
          w[std::size_t(j)] = x.scale() * variants::turned_dot(x, row, j, frequencies);
        variants::softmax(w);
      });
}
