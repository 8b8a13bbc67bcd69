// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A formula of a paper as an operator: Mega's attention by the Laplace function, compared with a loop, then checked on
// every call, forward and gradients.
// [snippet: includes]
#include <cmath>
#include <cstdio>
#include <iostream>
#include <numbers>
#include <vector>

#include <attune/attune.hpp>
#include <attune/testing.hpp>

using namespace attune;
// [/snippet]

// [snippet: length_scale]
/// a = s / K: scores divided by the number of visible keys.
struct per_key {
  static constexpr auto role = policy_role::length_scale;
  static constexpr length_scale_traits traits{};
  template <class T>
  struct bound {
    T factor;
    T scale(T const& s) const { return math::scale_keeping_off(factor, s); }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {T(1) / math::larger(r.visible, T(1))};
  }
};
// [/snippet]

// [snippet: normalizer]
/// w = (1 + erf((a - mu) / (sigma sqrt 2))) / 2: every key by itself, without a sum.
struct laplace {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.divided_by = divisor::one, .reference = mass_reference::none};
  parameter mu = std::sqrt(0.5), sigma = std::sqrt(0.25 / std::numbers::pi);
  static constexpr auto parameters() {
    return std::array{listed("mu", &laplace::mu), listed("sigma", &laplace::sigma, domain::positive)};
  }
  template <class T>
  struct bound {
    T shift, slope;
    T earned(T const& a, T const&) const { return (T(1) + math::erf(T(slope * (a - shift)))) * T(0.5); }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r.logit(mu), T(T(1) / (r(sigma) * math::sqrt(T(2))))};
  }
};
// [/snippet]

int main() {
  // [snippet: operator]
  auto const mega = attention(kernel::dot_product{1}, per_key{}, laplace{}, mask::causal{});
  // [/snippet]

  // [snippet: loop]
  shape const extents{1, 1, 6, 4};
  std::vector<double> q, k, v, out(24);
  for (int n = 0; n < 24; ++n) q.push_back(std::sin(n)), k.push_back(std::cos(3 * n)), v.push_back(std::sin(2 * n));
  forward(cpu<double>{}, mega, {.q = tensor(q, extents), .k = tensor(k, extents), .v = tensor(v, extents)},
          {.out = tensor(out, extents)});

  double worst = 0;
  for (std::size_t i = 0; i < 6; ++i) {
    double expected[4] = {};
    for (std::size_t j = 0; j <= i; ++j) {
      double s = 0;
      for (std::size_t d = 0; d < 4; ++d) s += q[4 * i + d] * k[4 * j + d];
      double const x = s / double(i + 1), mu = 0.70710678118654752, sigma = 0.28209479177387814;
      for (std::size_t d = 0; d < 4; ++d)
        expected[d] += 0.5 * (1 + std::erf((x - mu) / (sigma * std::sqrt(2.0)))) * v[4 * j + d];
    }
    for (std::size_t d = 0; d < 4; ++d) worst = std::max(worst, std::abs(out[4 * i + d] - expected[d]));
  }
  std::printf("the loop agrees within %.0e\n", worst < 1e-15 ? 1e-15 : worst);
  // [/snippet]

  // [snippet: check]
  auto const computed = testing::check_forward(mega, {.heads = 2, .queries = 5, .keys = 75, .width = 16}, 1);
  auto const slopes = testing::check_gradients(mega, {.heads = 2, .queries = 5, .keys = 7, .width = 4}, 1);
  if (!computed.passed() || !slopes.passed()) std::cout << computed << slopes;
  // [/snippet]
  if (computed.passed() && slopes.passed() && worst < 1e-15) std::puts("forward and gradients agree");
  return computed.passed() && slopes.passed() && worst < 1e-15 ? 0 : 1;
}
