// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Rotary positions (RoPE) with ALiBi
//   Su et al., RoFormer, 2021, arXiv 2104.09864, and Press et al., Train Short, Test Long, 2021, arXiv 2108.12409
//   s_ij = c <R(i) q_i, R(j) k_j> - m_h |i - j|,   R(p) turns pair r of the features by p 10000^(-2r / D)
//
// Your code keeps the angles: the operator reads them.
#include "shared/turned.hpp"

using namespace attune;

// [snippet: variant]
auto alibi_rotary(rotary_angles<double> const& angles, parameter slope) {
  return attention(kernel::rotary{angles} + kernel::alibi{slope}, mask::causal{});
}
// [/snippet]

int main() {
  std::vector<double> const slope{0.25, 0.0625};
  rotary_angles<double> angles(rotary_frequencies::plain(8), 1);
  return variants::run(
      [&](testing::problem_extents const& e) {
        angles = rotary_angles<double>(rotary_frequencies::plain(e.width), e.keys);
        return alibi_rotary(angles, per_head(slope));
      },
      [&](auto const& x, auto const& row, variants::weights& w) {
        std::vector<double> frequencies;
        for (index_t r = 0; r < x.width / 2; ++r)
          frequencies.push_back(std::pow(10000, -2 * double(r) / double(x.width)));
        std::fill(w.begin(), w.end(), -INFINITY);
        for (index_t j = 0; j <= row.position; ++j)
          w[std::size_t(j)] = x.scale() * variants::turned_dot(x, row, j, frequencies) -
                              slope[std::size_t(row.h)] * double(row.position - j);
        variants::softmax(w);
      });
}
