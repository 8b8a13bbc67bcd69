// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Squared ReLU by length
//   Wortsman et al., Replacing softmax with ReLU in Vision Transformers, 2023, arXiv 2309.08586
//   w_ij = max(c <q_i, k_j>, 0)^2 / n,   n keys
//
// One of the point-wise functions that the paper compares. normalizer::mean_relu is its ReLU.
#include "shared/variant.hpp"

using namespace attune;

// [snippet: variant]
struct squared_relu {
  template <class T>
  static T map(T const& a) {
    T const positive = math::larger(a, T(0));
    return positive * positive;
  }
};
auto const relu_squared = attention(kernel::dot_product{}, normalizer::generic<squared_relu, divisor::count>{});
// [/snippet]

int main() {
  return variants::run(relu_squared, [](auto const& x, auto const& row, variants::weights& w) {
    auto const [b, h, i, position] = row;
    for (index_t j = 0; j < x.keys; ++j)
      w[std::size_t(j)] = std::pow(std::max(x.scale() * x.dot(b, h, i, j), 0.0), 2) / double(x.keys);
  });
}
