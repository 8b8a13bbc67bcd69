// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Window attention with a relative position bias (Swin)
//   Liu et al., Swin Transformer: Hierarchical Vision Transformer using Shifted Windows, 2021, arXiv 2103.14030
//   s_ij = c <q_i, k_j> + B_h[y_i - y_j, x_i - x_j],   i and j places of a window of M x M patches
//
// Each window is a batch element, with its patches row after row. B is learned: (2 M - 1)^2 numbers for each head.
#include "shared/variant.hpp"

using namespace attune;

// [snippet: variant]
struct window_bias {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::gathered_by_pair;
  table values;
  index_t side = 1;  // M
  static constexpr auto parameters() { return std::tuple<>{}; }
  static constexpr auto tables() { return std::array{listed("values", &window_bias::values, table_width::one)}; }
  index_t index(index_t i, index_t j) const {
    index_t const dy = i / side - j / side, dx = i % side - j % side;
    return (dy + side - 1) * (2 * side - 1) + dx + side - 1;
  }
  template <class T>
  kernel::bound_identity<T> bind(row<T> const&) const {
    return {};
  }
};
auto swin(table values, index_t side) { return attention(kernel::dot_product{} + window_bias{values, side}); }
// [/snippet]

int main() {
  std::vector<double> bias;
  index_t side = 1;
  return variants::run(
      [&](testing::problem_extents const& e) {
        side = index_t(std::lround(std::sqrt(double(e.keys))));
        index_t const rows = (2 * side - 1) * (2 * side - 1);
        bias.clear();
        for (index_t n = 0; n < e.heads * rows; ++n) bias.push_back(std::sin(double(1 + 31 * n)));
        return swin(tensor<double const>(bias, shape{1, e.heads, rows, 1}), side);
      },
      [&](auto const& x, auto const& row, variants::weights& w) {
        auto const [b, h, i, position] = row;
        index_t const reach = side - 1, extent = 2 * side - 1;
        for (index_t y = 0; y < side; ++y)
          for (index_t column = 0; column < side; ++column) {
            index_t const j = y * side + column, dy = i / side - y, dx = i % side - column;
            double const learned = bias[std::size_t((h * extent + dy + reach) * extent + dx + reach)];
            w[std::size_t(j)] = x.scale() * x.dot(b, h, i, j) + learned;
          }
        variants::softmax(w);
      },
      {.extents = {.heads = 2, .queries = 9, .keys = 9, .width = 8},
       .compared = {.batch = 3, .heads = 2, .queries = 64, .keys = 64, .width = 8, .key_heads = 2, .value_heads = 2},
       .timed = {.batch = 16, .heads = 2, .queries = 64, .keys = 64, .width = 32}});
}
