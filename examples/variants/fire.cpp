// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// FIRE
//   Li et al., Functional Interpolation for Relative Positions, 2023, arXiv 2310.04418
//   s_ij = c <q_i, k_j> + f_h(log(1 + g (i - j)) / log(1 + g max(i, L))),   f_h an MLP with 32 hidden units
//
// g, L and the MLP are learned. All heads share the hidden units. A bias of the output of f_h would not change softmax.
#include "shared/variant.hpp"

using namespace attune;

// [snippet: variant]
struct fire {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::none;
  table hidden, out;  // (1, 1, 2, 32): weights and biases; (1, heads, 1, 32): weights
  parameter g = 1, least = 16;
  static constexpr auto parameters() {
    return std::array{listed("g", &fire::g, domain::positive), listed("least", &fire::least, domain::positive)};
  }
  static constexpr auto tables() {
    return std::array{listed("hidden", &fire::hidden, table_width::any, table_use::bind),
                      listed("out", &fire::out, table_width::any, table_use::bind)};
  }
  template <class T>
  struct bound {
    table_entries<T> weight, bias, out;
    T g, position, inverse;
    T score(key<T> const& k) const {
      T const x = math::log1p(T(g * math::abs(T(position - k.position)))) * inverse;
      T sum(0);
      for (int n = 0; n < 32; ++n) sum = sum + out[n] * math::larger(T(weight[n] * x + bias[n]), T(0));
      return sum;
    }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    T const inverse = T(1) / math::log1p(T(r(g) * math::larger(r.position, r(least))));
    return {r.entries(hidden, 0), r.entries(hidden, 1), r.entries(out), r(g), r.position, inverse};
  }
};
// [/snippet]

int main() {
  std::vector<double> hidden, out;
  for (int n = 0; n < 64; ++n) hidden.push_back(std::sin(1.0 + 3 * n)), out.push_back(0.3 * std::sin(2.0 + 5 * n));
  fire const bias{tensor<double const>(hidden, shape{1, 1, 2, 32}), tensor<double const>(out, shape{1, 2, 1, 32})};
  return variants::run(attention(kernel::dot_product{} + bias, mask::causal{}), [&](auto const& x, auto const& row,
                                                                                    variants::weights& w) {
    auto const [b, h, i, position] = row;
    std::fill(w.begin(), w.end(), -INFINITY);
    for (index_t j = 0; j <= position; ++j) {
      double const distance = std::log(1 + double(position - j)) / std::log(1 + std::max(double(position), 16.0));
      double f = 0;
      for (std::size_t n = 0; n < 32; ++n) {
        double const unit = hidden[n] * distance + hidden[32 + n];
        if (unit > 0) f += out[std::size_t(h) * 32 + n] * unit;
      }
      w[std::size_t(j)] = x.scale() * x.dot(b, h, i, j) + f;
    }
    variants::softmax(w);
  });
}
