// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Dropout on attention weights, and a weight gate of your own.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

// [snippet: includes]
#include <attune/attune.hpp>

using namespace attune;
// [/snippet]

// [snippet: decay]
/// The weight of a key fades with its distance, after the normalizer: factor e^(-rate (i - j)), with a learned rate.
struct weight_decay {
  static constexpr auto role = policy_role::weight_gate;
  using contraction = contraction::none;
  parameter rate = 0.1;
  static constexpr auto parameters() { return std::array{listed("rate", &weight_decay::rate)}; }
  template <class T>
  struct bound {
    T rate, position;
    T factor(key<T> const& k) const { return math::exp(T(-rate * (position - k.position))); }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r(rate), r.position};
  }
};
// [/snippet]

int main() {
  index_t const B = 1, H = 2, L = 6, D = 4;
  shape const extents{B, H, L, D};
  auto const numbers = [&](double from) {
    std::vector<float> x;
    for (index_t n = 0; n < extents.size(); ++n) x.push_back(float(std::sin(from + 1.7 * double(n))));
    return x;
  };
  auto const q = numbers(1), k = numbers(2), v = numbers(3), by = numbers(4);
  std::vector<float> out(q.size());
  tensor const Q(q, extents), K(k, extents), V(v, extents), dO(by, extents);

  // [snippet: train]
  std::uint64_t const step = 100, layer = 3;
  auto const op =
      attention(kernel::dot_product{}, gate::dropout{.rate = 0.1, .seed = step * 1000 + layer}, mask::causal{});
  auto const saved = forward_and_save(cpu{}, op, {.q = Q, .k = K, .v = V}, {.out = tensor(out, extents)});
  auto const g = vjp(cpu{}, op, {.q = Q, .k = K, .v = V}, saved, {.out = dO});
  // [/snippet]
  double size = 0;
  for (float x : g.of(field::v).values) size += std::fabs(double(x));
  std::printf("gradient by v: %.3f\n", size);

  // [snippet: mean]
  std::vector<double> mean(out.size(), 0.0);
  int const seeds = 20000;
  for (int seed = 0; seed < seeds; ++seed) {
    auto const dropping =
        attention(kernel::dot_product{}, gate::dropout{.rate = 0.3, .seed = std::uint64_t(seed)}, mask::causal{});
    forward(cpu{1}, dropping, {.q = Q, .k = K, .v = V}, {.out = tensor(out, extents)});
    for (std::size_t n = 0; n < out.size(); ++n) mean[n] += double(out[n]) / seeds;
  }
  forward(cpu{}, attention(kernel::dot_product{}, mask::causal{}), {.q = Q, .k = K, .v = V},
          {.out = tensor(out, extents)});
  // [/snippet]
  double distance = 0;
  for (std::size_t n = 0; n < out.size(); ++n) distance = std::max(distance, std::fabs(mean[n] - double(out[n])));
  std::printf("the mean over seeds is the output without dropout: %s\n", distance < 0.03 ? "yes" : "no");

  auto const fading = attention(kernel::dot_product{}, weight_decay{0.5}, mask::causal{});
  auto const slope = vjp(cpu{}, fading, {.q = Q, .k = K, .v = V}, {.out = dO});
  std::printf("gradient by the rate: %.3f\n", double(slope.parameter("weight_gate.rate").values[0]));
}
