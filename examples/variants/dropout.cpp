// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Dropout of attention weights
//   Vaswani et al., Attention Is All You Need, 2017, arXiv 1706.03762
//   w_ij = f_ij softmax_j c <q_i, k_j>,   f_ij = 0 with probability p, else 1 / (1 - p)
//
// Give each step and each layer its own seed. The gradient draws the same numbers again.
#include "shared/variant.hpp"

using namespace attune;

// [snippet: variant]
auto dropped(double p, std::uint64_t seed) {
  return attention(kernel::dot_product{}, gate::dropout{.rate = p, .seed = seed}, mask::causal{});
}
// [/snippet]

/// Philox4x32-10 (Salmon et al. 2011) as its authors write it.
std::array<std::uint32_t, 4> philox_words(std::array<std::uint32_t, 4> c, std::uint64_t seed) {
  std::uint32_t k0 = std::uint32_t(seed), k1 = std::uint32_t(seed >> 32);
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
    std::uint64_t const first = std::uint64_t(0xD2511F53u) * c[0], second = std::uint64_t(0xCD9E8D57u) * c[2];
    c = {std::uint32_t(second >> 32) ^ c[1] ^ k0, std::uint32_t(second), std::uint32_t(first >> 32) ^ c[3] ^ k1,
         std::uint32_t(first)};
  }
  return c;
}

int main() {
  double const p = 0.3;
  std::uint64_t const seed = 0x123456789abcdefu;
  return variants::run(dropped(p, seed), [&](auto const& x, auto const& row, variants::weights& w) {
    auto const [b, h, i, position] = row;
    std::fill(w.begin(), w.end(), -INFINITY);
    for (index_t j = 0; j <= position; ++j) w[std::size_t(j)] = x.scale() * x.dot(b, h, i, j);
    variants::softmax(w);
    for (index_t j = 0; j <= position; ++j) {
      auto const words =
          philox_words({std::uint32_t(j / 4), std::uint32_t(position), std::uint32_t(h), std::uint32_t(b)}, seed);
      double const drawn = std::floor(words[std::size_t(j % 4)] / 256.0) / 16777216;
      w[std::size_t(j)] *= drawn < p ? 0 : 1 / (1 - p);
    }
  });
}
