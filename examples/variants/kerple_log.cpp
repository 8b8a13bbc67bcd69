// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// KERPLE, logarithmic
//   Chi et al., KERPLE: Kernelized Relative Positional Embedding for Length Extrapolation, 2022, arXiv 2205.09921
//   s_ij = c <q_i, k_j> - r1 log(1 + r2 |i - j|),   r1, r2 > 0, one of each per head
#include "shared/variant.hpp"

using namespace attune;

// [snippet: variant]
struct kerple_log {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::none;
  parameter r1 = 1, r2 = 1;
  static constexpr auto parameters() {
    return std::array{listed("r1", &kerple_log::r1, domain::positive), listed("r2", &kerple_log::r2, domain::positive)};
  }
  template <class T>
  struct bound {
    T r1, r2, position;
    T score(key<T> const& k) const { return -r1 * math::log1p(T(r2 * math::abs(T(position - k.position)))); }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r(r1), r(r2), r.position};
  }
};
// [/snippet]

int main() {
  std::vector<double> const r1{0.7, 1.3}, r2{0.5, 2};
  auto const op = attention(kernel::dot_product{} + kerple_log{per_head(r1), per_head(r2)}, mask::causal{});
  return variants::run(op, [&](auto const& x, auto const& row, variants::weights& w) {
    auto const [b, h, i, position] = row;
    std::fill(w.begin(), w.end(), -INFINITY);
    for (index_t j = 0; j <= position; ++j)
      w[std::size_t(j)] =
          x.scale() * x.dot(b, h, i, j) - r1[std::size_t(h)] * std::log(1 + r2[std::size_t(h)] * double(position - j));
    variants::softmax(w);
  });
}
