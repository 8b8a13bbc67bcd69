// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Epanechnikov attention
//   Santos et al., Sparse Attention as Compact Kernel Regression, 2026, arXiv 2601.22766
//   w_ij = max(1 - |q_i - k_j|^2 / tau, 0) / sum_l max(1 - |q_i - k_l|^2 / tau, 0)
//
// Nadaraya-Watson regression with a kernel of bounded support. A query without a key within the radius sqrt(tau) has
// the output 0.
#include "shared/variant.hpp"

using namespace attune;

// [snippet: variant]
struct above_minus_one {
  template <class T>
  static T map(T const& a) {
    return math::larger(T(T(1) + a), T(0));
  }
};
auto epanechnikov(parameter tau) { return attention(kernel::rbf{tau}, normalizer::generic<above_minus_one>{}); }
// [/snippet]

int main() {
  std::vector<double> const tau{9, 20};
  return variants::run(epanechnikov(per_head(tau)), [&](auto const& x, auto const& row, variants::weights& w) {
    auto const [b, h, i, position] = row;
    double sum = 0;
    for (index_t j = 0; j < x.keys; ++j) {
      double square = 0;
      for (index_t d = 0; d < x.width; ++d) square += std::pow(x.q(b, h, i, d) - x.k(b, h, j, d), 2);
      sum += w[std::size_t(j)] = std::max(1 - square / tau[std::size_t(h)], 0.0);
    }
    if (sum > 0)
      for (double& y : w) y /= sum;
  });
}
