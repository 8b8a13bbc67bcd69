// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Sandwich
//   Chi et al., Dissecting Transformer Length Extrapolation, 2023, arXiv 2212.10356
//   s_ij = c <q_i, k_j> + H / (8 h) sum_{d < D/2} cos((i - j) / 10000^(2d / D)),   h = 1, ..., H
//
// The sum is the product of two sinusoidal position embeddings of width D, which is not the width of the heads. The
// paper uses D = 128.
#include "shared/variant.hpp"

using namespace attune;

// [snippet: variant]
struct sandwich_tables {
  shape of_heads, shared;
  std::vector<double> cosine, sine, frequency;

  sandwich_tables(index_t heads, index_t width)
      : of_heads{1, heads, width / 2, 1}, shared{1, 1, width / 2, 1}, sine(std::size_t(width / 2), 0.0) {
    for (index_t h = 1; h <= heads; ++h) cosine.insert(cosine.end(), sine.size(), double(heads) / double(8 * h));
    for (index_t d = 0; d < width / 2; ++d) frequency.push_back(std::pow(10000, -2 * double(d) / double(width)));
  }
  auto bias() const {
    using view = tensor<double const>;
    return kernel::fourier_prior{view(cosine, of_heads), view(sine, shared), view(frequency, shared)};
  }
};
// [/snippet]

int main() {
  index_t const heads = 2, width = 128;
  sandwich_tables const tables(heads, width);
  auto const op = attention(kernel::dot_product{} + tables.bias(), mask::causal{});
  auto const embedded = [](index_t position, index_t d) {
    double const angle = double(position) / std::pow(10000, double(d / 2 * 2) / double(width));
    return d % 2 == 0 ? std::sin(angle) : std::cos(angle);
  };
  return variants::run(op, [&](auto const& x, auto const& row, variants::weights& w) {
    auto const [b, h, i, position] = row;
    std::fill(w.begin(), w.end(), -INFINITY);
    for (index_t j = 0; j <= position; ++j) {
      double bias = 0;
      for (index_t d = 0; d < width; ++d) bias += embedded(position, d) * embedded(j, d);
      w[std::size_t(j)] = x.scale() * x.dot(b, h, i, j) + bias / (double(h + 1) * 8 / double(heads));
    }
    variants::softmax(w);
  });
}
