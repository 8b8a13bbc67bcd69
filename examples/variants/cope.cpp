// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Contextual position encoding (CoPE)
//   Golovneva et al., Contextual Position Encoding: Learning to Count What's Important, 2024, arXiv 2405.18719
//   s_ij = c <q_i, k_j> + z_i[p_ij],   p_ij = min(sum_{j <= l <= i} sigmoid(<q_i, k_l>), P - 1)
//
// z_i[p] = <q_i, e_p> of P learned vectors e, with values on a line between two integers. Your model computes z, the
// input position_scores, and passes its gradient on to q and e.
#include "shared/variant.hpp"

using namespace attune;

// [snippet: variant]
struct gate_of_key {
  template <class T>
  static T map(T const& x) {
    return math::sigmoid(x);
  }
};
struct cope {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::interpolated<contraction::later_sum_with_own<contraction::dot, gate_of_key>>;
  template <class T>
  struct bound {
    T scale;
    T score(T const& x, T const&, T const& z, key<T> const&) const { return scale * x + z; }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r.inverse_sqrt_width};
  }
};
// [/snippet]

int main() {
  // As many vectors e as features: the numbers of the problem's first keys.
  auto const model = [](variants::loop_inputs const& x) {
    for (index_t h = 0; h < x.heads; ++h)
      for (index_t i = 0; i < x.queries; ++i)
        for (index_t p = 0; p < x.width; ++p) {
          double sum = 0;
          for (index_t d = 0; d < x.width; ++d) sum += x.q(0, h, i, d) * x.k(0, h, p, d);
          x.of(field::position_scores, 0, h, i, p) = double(float(sum));
        }
  };
  return variants::run(attention(cope{}, mask::causal{}),
                       [](auto const& x, auto const& row, variants::weights& w) {
                         auto const [b, h, i, position] = row;
                         std::fill(w.begin(), w.end(), -INFINITY);
                         double p = 0;
                         for (index_t j = position; j >= 0; --j) {
                           p += 1 / (1 + std::exp(-x.dot(b, h, i, j)));
                           double const at = std::min(p, double(x.width - 1)), n = std::floor(at), f = at - n;
                           auto const z = [&](double entry) {
                             return x.of(field::position_scores, row.b, row.h, row.i,
                                         std::min(index_t(entry), x.width - 1));
                           };
                           w[std::size_t(j)] = x.scale() * x.dot(b, h, i, j) + (1 - f) * z(n) + f * z(n + 1);
                         }
                         variants::softmax(w);
                       },
                       {.model = model});
}
