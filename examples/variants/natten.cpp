// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Neighborhood attention (NATTEN)
//   Hassani et al., Neighborhood Attention Transformer, 2022, arXiv 2204.07143
//   s_ij = c <q_i, k_j> + B_h[y_i - y_j, x_i - x_j],   j in the square of (2 r + 1)^2 patches around i
//
// Patches are row after row. At the edges of the image the square moves into it, so that distances are up to 2 r, and B
// has (4 r + 1)^2 numbers for each head. The image has more than 2 r + 1 rows and columns.
#include "shared/variant.hpp"

using namespace attune;

// [snippet: variant]
struct grid_bias {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::gathered_by_pair;
  table values;
  index_t columns = 1, reach = 0;
  static constexpr auto parameters() { return std::tuple<>{}; }
  static constexpr auto tables() { return std::array{listed("values", &grid_bias::values, table_width::one)}; }
  index_t index(index_t i, index_t j) const {
    return (i / columns - j / columns + reach) * (2 * reach + 1) + i % columns - j % columns + reach;
  }
  template <class T>
  kernel::bound_identity<T> bind(row<T> const&) const {
    return {};
  }
};
/// The keys of a row are an interval in each of 2 r + 1 rows of the image.
struct neighborhood {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::intervals;
  index_t rows = 1, columns = 1, radius = 0;
  key_interval next(mask_row const& r, index_t from) const {
    index_t const width = 2 * radius + 1, y = std::clamp(r.position / columns - radius, index_t(0), rows - width),
                  x = std::clamp(r.position % columns - radius, index_t(0), columns - width),
                  line = std::max(y, (from + columns - x - width) / columns);
    return line < y + width ? key_interval{line * columns + x, line * columns + x + width} : key_interval{};
  }
};
auto natten(table values, neighborhood const& near) {
  return attention(kernel::dot_product{} + grid_bias{values, near.columns, 2 * near.radius}, near);
}
// [/snippet]

int main() {
  std::vector<double> bias;
  neighborhood near;
  return variants::run(
      [&](testing::problem_extents const& e) {
        near.columns = e.keys == 20 ? 5 : e.keys == 90 ? 10 : 32;
        near.rows = e.keys / near.columns;
        near.radius = e.keys == 20 ? 1 : e.keys == 90 ? 2 : 3;
        index_t const rows = (4 * near.radius + 1) * (4 * near.radius + 1);
        bias.clear();
        for (index_t n = 0; n < e.heads * rows; ++n) bias.push_back(std::sin(double(1 + 31 * n)));
        return natten(tensor<double const>(bias, shape{1, e.heads, rows, 1}), near);
      },
      [&](auto const& x, auto const& row, variants::weights& w) {
        auto const [b, h, i, position] = row;
        auto const [height, columns, radius] = near;
        auto const center = [r = radius](index_t at, index_t extent) {
          return std::min(std::max(at, r), extent - 1 - r);
        };
        index_t const y = center(i / columns, height), column = center(i % columns, columns), extent = 4 * radius + 1;
        std::fill(w.begin(), w.end(), -INFINITY);
        for (index_t j = 0; j < x.keys; ++j) {
          if (std::abs(j / columns - y) > radius || std::abs(j % columns - column) > radius) continue;
          index_t const dy = i / columns - j / columns + 2 * radius, dx = i % columns - j % columns + 2 * radius;
          w[std::size_t(j)] = x.scale() * x.dot(b, h, i, j) + bias[std::size_t((h * extent + dy) * extent + dx)];
        }
        variants::softmax(w);
      },
      {.extents = {.heads = 2, .queries = 20, .keys = 20, .width = 4},
       .compared = {.heads = 2, .queries = 90, .keys = 90, .width = 8}});
}
