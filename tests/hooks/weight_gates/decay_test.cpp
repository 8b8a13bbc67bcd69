// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A decay of the weights after softmax, gamma^(i - j) with gamma = e^-rate, against a loop of its own.
#include <algorithm>
#include <cmath>
#include <vector>

#include <attune/attune.hpp>
#include <attune/testing/drawn_problem.hpp>

#include "../../support/weight_gates.hpp"
#include "../../unit/check.hpp"

namespace attune::test {
namespace {

constexpr index_t heads = 2, keys = 70, width = 4;
constexpr shape rows{1, heads, keys, width};

std::vector<double> drawn(std::uint64_t seed) {
  testing::detail::normal_numbers random{seed};
  std::vector<double> x;
  for (index_t n = 0; n < rows.size(); ++n) x.push_back(random());
  return x;
}

TEST_CASE("a decay of the weights: the output, the lse and the gradient by the rate") {
  auto const q = drawn(1), k = drawn(2), v = drawn(3), by = drawn(4);
  std::vector<double> const rates{0.02, 0.3};
  auto const op = attention(weight_decay{per_head(rates)}, mask::causal{}, kernel::dot_product{});
  tensor const Q(q, rows), K(k, rows), V(v, rows), dO(by, rows);
  std::vector<double> out(q.size()), lse(std::size_t(heads * keys));
  auto const saved = forward_and_save(cpu<double>{1}, op, {.q = Q, .k = K, .v = V},
                                      {.out = tensor(out, rows), .lse = natural_lse(tensor(lse, {1, heads, keys, 1}))});
  auto const g = vjp(cpu<double>{1}, op, {.q = Q, .k = K, .v = V}, saved, {.out = dO});

  for (index_t h = 0; h < heads; ++h) {
    double const gamma = std::exp(-rates[std::size_t(h)]);
    double by_rate = 0;
    for (index_t i = 0; i < keys; ++i) {
      std::vector<double> e(std::size_t(i + 1));
      double sum = 0;
      for (index_t j = 0; j <= i; ++j) {
        double s = 0;
        for (index_t d = 0; d < width; ++d) s += Q(0, h, i, d) * K(0, h, j, d);
        sum += e[std::size_t(j)] = std::exp(s / std::sqrt(double(width)));
      }
      CHECK(near(lse[std::size_t(h * keys + i)], std::log(sum), 1e-12));  // the decay is not in it
      for (index_t d = 0; d < width; ++d) {
        double o = 0, slope = 0;
        for (index_t j = 0; j <= i; ++j) {
          double const w = std::pow(gamma, double(i - j)) * e[std::size_t(j)] / sum;
          o += w * V(0, h, j, d);
          slope -= double(i - j) * w * V(0, h, j, d);
        }
        CHECK(std::fabs(out[std::size_t((h * keys + i) * width + d)] - o) < 1e-13);
        by_rate += slope * dO(0, h, i, d);
      }
    }
    CHECK(std::fabs(g.parameter("weight_gate.rate").values[std::size_t(h)] - by_rate) < 1e-10);
  }
}

TEST_CASE("a decay of rate 0 is no gate") {
  auto const q = drawn(1), k = drawn(2), v = drawn(3);
  tensor const Q(q, rows), K(k, rows), V(v, rows);
  std::vector<double> out(q.size()), plain(q.size());
  forward(cpu<double>{1}, attention(kernel::dot_product{}, weight_decay{0}, mask::causal{}), {.q = Q, .k = K, .v = V},
          {.out = tensor(out, rows)});
  forward(cpu<double>{1}, attention(kernel::dot_product{}, mask::causal{}), {.q = Q, .k = K, .v = V},
          {.out = tensor(plain, rows)});
  CHECK(out == plain);
}

}  // namespace
}  // namespace attune::test
