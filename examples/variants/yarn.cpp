// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Rotary positions with YaRN
//   Peng et al., YaRN: Efficient Context Window Extension of Large Language Models, 2023, arXiv 2309.00071
//   s_ij = c m^2 <R(i) q_i, R(j) k_j>,   m = 0.1 log s + 1,   R(p) turns pair r by p ((1 - g_r) w_r + g_r w_r / s)
//
// w_r = 10000^(-2r / D), and s is the length of the context, divided by the length L in training. g rises from 0 at the
// pair that turns 32 times within L to 1 at the pair that turns once: linearly in r, as in the authors' code.
#include "shared/turned.hpp"

using namespace attune;

// [snippet: variant]
rotary_angles<double> yarn_angles(index_t width, double scale, index_t trained, index_t length) {
  return {rotary_frequencies::yarn(width, scale, trained), length};
}
auto yarn(rotary_angles<double> const& angles) { return attention(kernel::rotary{angles}, mask::causal{}); }
// [/snippet]

/// The frequencies of D features, for s = 4 and L = 2048.
std::vector<double> scaled(index_t width) {
  double const d = double(width), twice_pi = 2 * std::acos(-1.0);
  auto const pair = [&](double turns) { return d / 2 * std::log(2048 / (turns * twice_pi)) / std::log(10000); };
  double const first = std::max(std::floor(pair(32)), 0.0), last = std::min(std::ceil(pair(1)), d - 1);
  std::vector<double> w;
  for (int r = 0; 2 * r < width; ++r) {
    double const g = std::clamp((r - first) / (last - first), 0.0, 1.0);
    w.push_back((1 - g + g / 4) / std::pow(10000, 2 * r / d));
  }
  return w;
}

int main() {
  auto angles = yarn_angles(8, 4, 2048, 1);
  return variants::run(
      [&](testing::problem_extents const& e) { return yarn(angles = yarn_angles(e.width, 4, 2048, e.keys)); },
      [](auto const& x, auto const& row, variants::weights& w) {
        double const m = 0.1 * std::log(4) + 1;
        std::fill(w.begin(), w.end(), -INFINITY);
        for (index_t j = 0; j <= row.position; ++j)
          w[std::size_t(j)] = x.scale() * m * m * variants::turned_dot(x, row, j, scaled(x.width));
        variants::softmax(w);
      });
}
