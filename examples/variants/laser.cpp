// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// LASER
//   Duvvuri and Dhillon, LASER: Attention with Exponential Transformation, 2024, arXiv 2411.03493
//   out_i = log(sum_j w_ij exp(v_j)),   w_ij = softmax_j c <q_i, k_j>
//
// A value gate is the exponential: give v as value_gate, and ones as v (one number with strides of 0). Your code takes
// the logarithm. The paper first subtracts the largest value of each feature, and adds it to the output.
#include "shared/variant.hpp"

using namespace attune;

// [snippet: variant]
struct exponential_value {
  static constexpr auto role = policy_role::value_gate;
  template <class T>
  struct bound {
    T factor(T const& x) const { return math::exp(x); }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
auto const laser = attention(kernel::dot_product{}, exponential_value{}, mask::causal{});
// [/snippet]

int main() {
  return variants::run(
      laser,
      [](auto const& x, auto const& row, variants::output_row& out) {
        auto const [b, h, i, position] = row;
        variants::weights w(std::size_t(x.keys), -INFINITY);
        for (index_t j = 0; j <= position; ++j) w[std::size_t(j)] = x.scale() * x.dot(b, h, i, j);
        variants::softmax(w);
        for (index_t d = 0; d < x.value_width; ++d) {
          double sum = 0;
          for (index_t j = 0; j <= position; ++j)
            sum += w[std::size_t(j)] * std::exp(x.of(field::value_gate, b, h, j, d));
          out.values[std::size_t(d)] = std::log(sum);
        }
      },
      {.draw = [](field f, double x) { return f == field::v ? 1 : x; }, .after = [](double x) { return std::log(x); }});
}
