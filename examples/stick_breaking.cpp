// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Stick-breaking attention: a kernel with a sum over later keys. Its outputs and gradients are those of the reference.
#include <cmath>
#include <iostream>
#include <random>
#include <vector>

#include <attune/attune.hpp>
#include <attune/reference.hpp>

namespace mine {

using namespace attune;

// [snippet: kernel]
/// log(1 - sigmoid(z)): the part of the stick that a key leaves to the keys before it.
struct left_over {
  template <class Bound, class T>
  static T map(Bound const& row, T const& x) {
    return -math::softplus(T(row.scale * x));
  }
};
/// a_ij = log sigmoid(z_ij) + sum of log(1 - sigmoid(z_ij')) over visible j' > j,     z = scale <q, k>.
/// With the term of key j in the sum, the first summand is z_ij itself.
struct stick_breaking {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::later_sum_with_own<contraction::dot, left_over>;
  parameter scale;
  static constexpr auto parameters() { return std::array{listed("scale", &stick_breaking::scale)}; }
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
// [/snippet]

}  // namespace mine

int main() {
  using namespace attune;
  constexpr index_t heads = 2, length = 100, width = 16;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  shape const rows{1, heads, length, width};
  auto const make = [&] {
    std::vector<float> x(std::size_t(rows.size()));
    for (float& e : x) e = normal(random);
    return x;
  };
  std::vector<float> const q = make(), k = make(), v = make(), d_out = make();
  std::vector<float> out(q.size());
  tensor const Q(q, rows), K(k, rows), V(v, rows), dO(d_out, rows);
  tensor const O(out, rows);

  // [snippet: call]
  auto const op = attention(mine::stick_breaking{}, normalizer::exponential{}, mask::causal{});
  auto const saved = forward_and_save(cpu{}, op, {.q = Q, .k = K, .v = V}, {.out = O});
  auto const g = vjp(cpu{}, op, {.q = Q, .k = K, .v = V}, saved, {.out = dO});
  // [/snippet]

  auto const exact = forward(reference<double>{}, op, {.q = Q, .k = K, .v = V});
  auto const slopes = vjp(reference<double>{}, op, {.q = Q, .k = K, .v = V}, {.out = dO});
  double largest_sum = 0, error = 0, slope_error = 0;
  for (index_t h = 0; h < heads; ++h)
    for (index_t i = 0; i < length; ++i) {
      largest_sum = std::fmax(largest_sum, exact.at(0, h).weights.row(i).sum());
      for (index_t d = 0; d < width; ++d) error = std::fmax(error, std::fabs(O(0, h, i, d) - exact.at(0, h).out(i, d)));
    }
  for (std::size_t n = 0; n < q.size(); ++n)
    slope_error = std::fmax(slope_error, std::fabs(g.of(field::k).values[n] - slopes.of(field::k).values[n]));
  std::cout << "weights sum to at most 1: " << (largest_sum <= 1 + 1e-12 ? "yes" : "no")
            << "\nas the reference: " << (error < 1e-5 ? "yes" : "no")
            << "\ngradients too: " << (slope_error < 1e-4 ? "yes" : "no") << "\n";
}
