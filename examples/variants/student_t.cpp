// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Student-t attention
//   Xie et al., Unsupervised Deep Embedding for Clustering Analysis, 2016, arXiv 1511.06335
//   w_ij = (1 + |q_i - k_j|^2 / nu)^(-(nu + 1) / 2) / sum_l (1 + |q_i - k_l|^2 / nu)^(-(nu + 1) / 2)
//
// The paper assigns points to centroids with nu = 1. Here nu > 0 is learned.
#include "shared/variant.hpp"

using namespace attune;

// [snippet: variant]
struct student_t {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::squared_distance;
  parameter nu = 1;
  static constexpr auto parameters() { return std::array{listed("nu", &student_t::nu, domain::positive)}; }
  template <class T>
  struct bound {
    T nu;
    T score(T const& distance, key<T> const&) const { return T(-0.5) * (nu + T(1)) * math::log1p(T(distance / nu)); }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r(nu)};
  }
};
// [/snippet]

int main() {
  std::vector<double> const nu{0.7, 5};
  return variants::run(attention(student_t{per_head(nu)}), [&](auto const& x, auto const& row, variants::weights& w) {
    auto const [b, h, i, position] = row;
    double const n = nu[std::size_t(h)];
    double sum = 0;
    for (index_t j = 0; j < x.keys; ++j) {
      double square = 0;
      for (index_t d = 0; d < x.width; ++d) square += std::pow(x.q(b, h, i, d) - x.k(b, h, j, d), 2);
      sum += w[std::size_t(j)] = std::pow(1 + square / n, -(n + 1) / 2);
    }
    for (double& y : w) y /= sum;
  });
}
