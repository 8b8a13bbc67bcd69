// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Rotary positions on a part of the features
//   Black et al., GPT-NeoX-20B, 2022, arXiv 2204.06745
//   s_ij = c (<R(i) q_i', R(j) k_j'> + <q_i'', k_j''>),   q' the first T of D features, q'' the others
//
// R(p) turns pair r of T features by p 10000^(-2r / T). The model has T = D / 4.
#include "shared/turned.hpp"

using namespace attune;

// [snippet: variant]
rotary_angles<double> some_angles(index_t turned, index_t length) {
  return {rotary_frequencies::plain(turned), length};
}
auto partial_rotary(rotary_angles<double> const& angles) { return attention(kernel::rotary{angles}, mask::causal{}); }
// [/snippet]

int main() {
  auto angles = some_angles(2, 1);
  return variants::run(
      [&](testing::problem_extents const& e) { return partial_rotary(angles = some_angles(e.width / 4, e.keys)); },
      [](auto const& x, auto const& row, variants::weights& w) {
        std::vector<double> frequencies;
        for (index_t r = 0; r < x.width / 8; ++r)
          frequencies.push_back(std::pow(10000, -8 * double(r) / double(x.width)));
        std::fill(w.begin(), w.end(), -INFINITY);
        for (index_t j = 0; j <= row.position; ++j)
          w[std::size_t(j)] = x.scale() * variants::turned_dot(x, row, j, frequencies);
        variants::softmax(w);
      },
      {.compared = {.heads = 2, .queries = 70, .keys = 90, .width = 24}});
}
