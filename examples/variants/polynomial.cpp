// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Polynomial attention, degree 4
//   Kacham et al., PolySketchFormer: Fast Transformers via Sketching Polynomial Kernels, 2023, arXiv 2310.01655
//   w_ij = <q_i, k_j>^4 / (1 + sum_l <q_i, k_l>^4)
//
// Your model applies layer normalization to q and k. The 1 is a constant mass.
#include "shared/variant.hpp"

using namespace attune;

// [snippet: variant]
struct fourth_power {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.reference = mass_reference::none, .constant_mass = true};
  template <class T>
  struct bound {
    T shift;  // the row constant of a length scale
    T earned(T const& a, T const&) const {
      T const square = (a + shift) * (a + shift);
      return square * square;
    }
    T constant(T const&) const { return T(1); }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r.logit_shift};
  }
};
auto const polynomial = attention(kernel::dot_product{1}, fourth_power{}, mask::causal{});
// [/snippet]

int main() {
  return variants::run(polynomial, [](auto const& x, auto const& row, variants::weights& w) {
    auto const [b, h, i, position] = row;
    double sum = 1;
    for (index_t j = 0; j <= position; ++j) sum += w[std::size_t(j)] = std::pow(x.dot(b, h, i, j), 4);
    for (double& y : w) y /= sum;
  });
}
