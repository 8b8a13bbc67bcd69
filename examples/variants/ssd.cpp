// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// State space duality (Mamba-2)
//   Dao and Gu, Transformers are SSMs, 2024, arXiv 2405.21060
//   w_ij = <q_i, k_j> exp(c_i - c_j),   c_i = sum_{l <= i} log a_l, no division
//
// In the paper's letters q is C, k is B and v is X. A score gate reads the difference of the cumulative sums c, which
// sort_q and sort_k both hold. As a layer with a state, the same operator is a recurrence: the loop computes that.
#include "shared/variant.hpp"

using namespace attune;

// [snippet: variant]
struct decay {
  static constexpr auto role = policy_role::gate;
  using contraction = contraction::scalar_difference;
  template <class T>
  struct bound {
    T gate(T const& score, T const& difference) const { return score * math::exp(difference); }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
struct identity {
  template <class T>
  static T map(T const& a) {
    return a;
  }
};
auto const ssd =
    attention(kernel::dot_product{1}, decay{}, normalizer::generic<identity, divisor::one>{}, mask::causal{});
// [/snippet]

/// The drawn numbers of sort_k give log a_l. Queries hold the sum at their own position.
void sum_decays(variants::loop_inputs const& x) {
  for (index_t j = 0; j < x.keys; ++j) {
    double& c = x.of(field::sort_k, 0, 0, j);
    c = (j == 0 ? 0 : x.of(field::sort_k, 0, 0, j - 1)) - c * c;
  }
  for (index_t h = 0; h < x.heads; ++h)
    for (index_t i = 0; i < x.queries; ++i) x.of(field::sort_q, 0, h, i) = x.of(field::sort_k, 0, h, i + x.offset);
}

int main() {
  return variants::run(
      ssd,
      [](auto const& x, auto const& row, variants::output_row& y) {
        auto const [b, h, i, position] = row;
        std::vector<double> state(std::size_t(x.width * x.value_width), 0.0);  // S_j = a_j S_(j-1) + k_j v_j^T
        for (index_t j = 0; j <= position; ++j) {
          double const before = j == 0 ? 0 : x.of(field::sort_k, b, h, j - 1);
          double const a = std::exp(x.of(field::sort_k, b, h, j) - before);
          for (index_t d = 0; d < x.width; ++d)
            for (index_t e = 0; e < x.value_width; ++e) {
              double& s = state[std::size_t(d * x.value_width + e)];
              s = a * s + x.k(b, h, j, d) * x.v(b, h, j, e);
            }
        }
        for (index_t d = 0; d < x.width; ++d)
          for (index_t e = 0; e < x.value_width; ++e)
            y.values[std::size_t(e)] += x.q(b, h, i, d) * state[std::size_t(d * x.value_width + e)];
      },
      {.draw = [](field f,
                  double x) { return f == field::sort_q   ? -std::fabs(x)
                                     : f == field::sort_k ? std::fabs(x)
                                                          : x; },
       .model = sum_decays});
}
