// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Graph attention, second version (GATv2)
//   Brody et al., How Attentive are Graph Attention Networks?, 2021, arXiv 2105.14491
//   s_ij = <a, LeakyReLU(W_1 h_i + W_2 h_j)>,   j a neighbor of i, slope 0.2 below 0
//
// q holds W_1 h_i, and k and v hold W_2 h_j. The edges of the graph are the mask. The vector a of each head is learned.
#include "shared/variant.hpp"

using namespace attune;

// [snippet: variant]
struct leaky_sum : contraction::sum_of<contraction::of_query<field::q>, contraction::of_key<field::k>,
                                       contraction::by_feature<contraction::tables::metric>> {
  template <class S>
  static S term(S const& q, S const& k, S const& a, S const&) {
    S const x = q + k;
    return a * math::larger(x, S(lift<S>::constant(0.2) * x));
  }
};
struct gatv2 {
  static constexpr auto role = policy_role::kernel;
  using contraction = leaky_sum;
  table metric;  // a: (1, heads, 1, features)
  static constexpr auto parameters() { return std::tuple<>{}; }
  static constexpr auto tables() { return std::array{listed("metric", &gatv2::metric, table_width::query_row)}; }
  template <class T>
  kernel::bound_identity<T> bind(row<T> const&) const {
    return {};
  }
};
// [/snippet]

bool connected(index_t i, index_t j) { return i == j || (i * j + i + j) % 5 == 1; }

int main() {
  std::vector<double> a;
  return variants::run(
      [&](testing::problem_extents const& e) {
        a.clear();
        for (index_t n = 0; n < e.heads * e.width; ++n) a.push_back(std::sin(double(1 + 31 * n)));
        return attention(gatv2{tensor<double const>(a, shape{1, e.heads, 1, e.width})},
                         mask::predicate{[](mask_row const& r, index_t j) { return connected(r.query, j); }});
      },
      [&](auto const& x, auto const& row, variants::weights& w) {
        auto const [b, h, i, position] = row;
        std::fill(w.begin(), w.end(), -INFINITY);
        for (index_t j = 0; j < x.keys; ++j) {
          if (!connected(i, j)) continue;
          double& s = w[std::size_t(j)] = 0;
          for (index_t d = 0; d < x.width; ++d) {
            double const sum = x.q(b, h, i, d) + x.k(b, h, j, d);
            s += a[std::size_t(h * x.width + d)] * (sum > 0 ? sum : 0.2 * sum);
          }
        }
        variants::softmax(w);
      },
      {.extents = {.heads = 2, .queries = 9, .keys = 9, .width = 8},
       .compared = {.heads = 2, .queries = 90, .keys = 90, .width = 8, .key_heads = 2, .value_heads = 2}});
}
