// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Hyperbolic attention
//   Gulcehre et al., Hyperbolic Attention Networks, 2018, arXiv 1805.09786
//   w_ij = exp(-beta d_ij) gamma_j / sum_l exp(-beta d_il) gamma_l,   d_ij = arccosh(q_i0 k_j0 - sum_{d > 0} q_id k_jd)
//
// q and k lie on the hyperboloid, where d(q, q) = 0. Values are points of the Klein ball with the Lorentz factor
// gamma_j = 1 / sqrt(1 - |v_j|^2), and the output is their Einstein midpoint. Give q with its feature 0 negated, and
// log gamma as key_bias.
#include "shared/variant.hpp"

using namespace attune;

// [snippet: variant]
struct lorentz_distance {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::dot;
  parameter beta = 1;
  static constexpr auto parameters() { return std::array{listed("beta", &lorentz_distance::beta, domain::positive)}; }
  template <class T>
  struct bound {
    T beta;
    T score(T const& dot, key<T> const&) const {
      T const e = math::larger(T(-dot - T(1)), lift<T>::constant(1e-7));  // rounding may leave less than 1 for arccosh
      return -beta * math::log1p(T(e + math::sqrt(T(e * (e + T(2))))));   // arccosh(1 + e)
    }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r(beta)};
  }
};
// [/snippet]

/// Puts queries and keys on the hyperboloid by their feature 0, and values into the ball.
void place(variants::loop_inputs const& x) {
  auto const feature_0 = [&](field f, index_t h, index_t i) {
    double square = 1;
    for (index_t d = 1; d < x.width; ++d) square += x.of(f, 0, h, i, d) * x.of(f, 0, h, i, d);
    return std::sqrt(square);
  };
  for (index_t h = 0; h < x.heads; ++h)
    for (index_t i = 0; i < x.queries; ++i) x.of(field::q, 0, h, i) = -feature_0(field::q, h, i);
  for (index_t j = 0; j < x.keys; ++j) {
    x.of(field::k, 0, 0, j) = feature_0(field::k, 0, j);
    double square = 0;
    for (index_t d = 0; d < x.value_width; ++d) square += x.v(0, 0, j, d) * x.v(0, 0, j, d);
    for (index_t d = 0; d < x.value_width; ++d) x.of(field::v, 0, 0, j, d) /= std::sqrt(1 + square);
    x.of(field::key_bias, 0, 0, j) = -0.5 * std::log1p(-square / (1 + square));
  }
}

int main() {
  std::vector<double> const beta{0.7, 1.5};
  auto const op = attention(lorentz_distance{per_head(beta)} + kernel::key_bias{}, mask::causal{});
  // In the checks every eighth feature is time-like and large enough for arccosh.
  auto const inside = [n = 0](field f, double x) mutable {
    if (f != field::q && f != field::k) return x;
    return n++ % 8 != 0 ? 0.5 * x : f == field::q ? -4 - std::fabs(x) : 4 + std::fabs(x);
  };
  return variants::run(op,
                       [&](auto const& x, auto const& row, variants::weights& w) {
                         auto const [b, h, i, position] = row;
                         double sum = 0;
                         for (index_t j = 0; j <= position; ++j) {
                           double product = -x.q(b, h, i, 0) * x.k(b, h, j, 0), square = 0;
                           for (index_t d = 1; d < x.width; ++d) product -= x.q(b, h, i, d) * x.k(b, h, j, d);
                           for (index_t d = 0; d < x.value_width; ++d) square += x.v(b, h, j, d) * x.v(b, h, j, d);
                           sum += w[std::size_t(j)] =
                               std::exp(-beta[std::size_t(h)] * std::acosh(product)) / std::sqrt(1 - square);
                         }
                         for (double& y : w) y /= sum;
                       },
                       {.draw = inside, .model = place});
}
