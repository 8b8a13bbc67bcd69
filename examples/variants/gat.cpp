// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Graph attention (GAT)
//   Velickovic et al., Graph Attention Networks, 2018, arXiv 1710.10903
//   s_ij = LeakyReLU(<a, [W h_i, W h_j]>),   j a neighbor of i, slope 0.2 below 0
//
// The product is a sum of two numbers: sort_q holds <a_1, W h_i>, sort_k holds -<a_2, W h_j>. Values are W h_j. The
// edges of the graph are the mask.
#include "shared/variant.hpp"

using namespace attune;

// [snippet: variant]
struct leaky_sum {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::scalar_difference;
  template <class T>
  struct bound {
    T score(T const& sum, key<T> const&) const { return math::larger(sum, T(lift<T>::constant(0.2) * sum)); }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
template <class Edge>
auto gat(Edge const& edge) {
  return attention(leaky_sum{}, mask::predicate{edge});
}
// [/snippet]

bool connected(index_t i, index_t j) { return i == j || (i * j + i + j) % 5 == 1; }

/// Feature d of the vector a of a head.
double a(index_t h, index_t d) { return std::sin(double(1 + 31 * h + d)); }

/// Computes the two numbers of each node from the values.
void project(variants::loop_inputs const& x) {
  for (index_t h = 0; h < x.heads; ++h)
    for (index_t i = 0; i < x.keys; ++i) {
      double& query = x.of(field::sort_q, 0, h, i);
      double& key = x.of(field::sort_k, 0, h, i);
      query = key = 0;
      for (index_t d = 0; d < x.value_width; ++d) {
        query += a(h, d) * x.v(0, h, i, d);
        key -= a(h, x.value_width + d) * x.v(0, h, i, d);
      }
    }
}

int main() {
  return variants::run(
      gat([](mask_row const& r, index_t j) { return connected(r.query, j); }),
      [](auto const& x, auto const& row, variants::weights& w) {
        auto const [b, h, i, position] = row;
        std::fill(w.begin(), w.end(), -INFINITY);
        for (index_t j = 0; j < x.keys; ++j) {
          if (!connected(i, j)) continue;
          double e = 0;
          for (index_t d = 0; d < x.value_width; ++d)
            e += a(h, d) * x.v(b, h, i, d) + a(h, x.value_width + d) * x.v(b, h, j, d);
          w[std::size_t(j)] = e > 0 ? e : 0.2 * e;
        }
        variants::softmax(w);
      },
      {.extents = {.heads = 2, .queries = 9, .keys = 9, .width = 8},
       .compared = {.heads = 2, .queries = 90, .keys = 90, .width = 8, .key_heads = 2, .value_heads = 2},
       .model = project});
}
