// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Power attention with gates, degree 2
//   Gelada et al., Scaling Context Requires Rethinking Attention, 2025, arXiv 2507.04239
//   w_ij = (c <q_i, k_j>)^2 exp(g_i - g_j) / sum_l (c <q_i, k_l>)^2 exp(g_i - g_l),   g_i = sum_{l <= i} log gate_l
//
// The logarithm of a weight is a kernel, so that softmax keeps the largest one in range. sort_q and sort_k both hold g.
#include "shared/variant.hpp"

using namespace attune;

// [snippet: variant]
struct log_square {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::dot;
  template <class T>
  struct bound {
    T scale;
    T score(T const& dot, key<T> const&) const {
      T const s = scale * dot;
      return math::log(T(s * s));
    }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r.inverse_sqrt_width};
  }
};
auto const gated_power = attention(log_square{} + kernel::scalar_difference{}, mask::causal{});
// [/snippet]

int main() {
  return variants::run(gated_power, [](auto const& x, auto const& row, variants::weights& w) {
    auto const [b, h, i, position] = row;
    double sum = 0;
    for (index_t j = 0; j <= position; ++j) {
      double const s = x.scale() * x.dot(b, h, i, j);
      sum += w[std::size_t(j)] = s * s * std::exp(x.of(field::sort_q, b, h, i) - x.of(field::sort_k, b, h, j));
    }
    for (double& y : w) y /= sum;
  });
}
