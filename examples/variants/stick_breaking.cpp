// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Stick-breaking attention
//   Tan et al., Scaling Stick-breaking Attention, 2024, arXiv 2410.17980
//   w_ij = sigmoid(z_ij) prod_{j < l < i} (1 - sigmoid(z_il)),   z_ij = c <q_i, k_j>
//
// Each key takes a part of the stick that later keys left. A query does not see its own key: give an offset that is 1
// less than usual. With the usual offset a query takes the first part itself.
#include "shared/variant.hpp"

using namespace attune;

// [snippet: variant]
/// log(1 - sigmoid(z)): the part of the stick that a key leaves to the keys before it.
struct left_over {
  template <class Bound, class T>
  static T map(Bound const& row, T const& x) {
    return -math::softplus(T(row.scale * x));
  }
};
/// log w_ij = log sigmoid(z_ij) + sum of log(1 - sigmoid(z_il)) over visible l > j. With the term of key j in the sum,
/// the first summand is z_ij itself.
struct stick {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::later_sum_with_own<contraction::dot, left_over>;
  parameter scale;
  static constexpr auto parameters() { return std::array{listed("scale", &stick::scale)}; }
  template <class T>
  struct bound {
    T scale;
    T score(T const& x, T const& later, key<T> const&) const { return scale * x + later; }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r(scale, r.inverse_sqrt_width)};
  }
};
auto const stick_breaking = attention(stick{}, normalizer::exponential{}, mask::causal{});
// [/snippet]

int main() {
  return variants::run(stick_breaking,
                       [](auto const& x, auto const& row, variants::weights& w) {
                         auto const [b, h, i, position] = row;
                         double left = 1;
                         for (index_t j = position; j >= 0; --j) {
                           double const part = 1 / (1 + std::exp(-x.scale() * x.dot(b, h, i, j)));
                           w[std::size_t(j)] = part * left;
                           left *= 1 - part;
                         }
                       },
                       {.extents = {.heads = 2, .queries = 7, .keys = 9, .width = 8, .offset = 1},
                        .compared = {.heads = 2, .queries = 70, .keys = 90, .width = 8, .offset = 19},
                        .timed = {.heads = 2, .queries = 1024, .keys = 1024, .width = 64, .offset = -1}});
}
