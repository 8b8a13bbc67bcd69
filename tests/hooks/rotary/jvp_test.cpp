// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// jvp of rotary embeddings is the transpose of vjp: <do, jvp(d)> = <vjp(do), d>.
#include <cmath>
#include <vector>

#include <attune/exec/cpu/gradients.hpp>
#include <attune/policies.hpp>

#include "../../unit/check.hpp"
#include "configurations.hpp"

namespace attune::test {
namespace {

constexpr index_t batch = 2, heads = 4, key_heads = 2, queries = 40, keys = 150, width = 11;
constexpr shape of_queries{batch, heads, queries, width}, of_keys{batch, key_heads, keys, width};

std::vector<double> drawn(shape const& s, double seed) {
  std::vector<double> x;
  for (index_t i = 0; i < s.size(); ++i) x.push_back(std::sin(seed + 1.7 * double(i) + std::cos(double(i))));
  return x;
}
double inner(std::vector<double> const& x, std::vector<double> const& y) {
  double sum = 0;
  for (std::size_t n = 0; n < x.size(); ++n) sum += x[n] * y[n];
  return sum;
}

TEST_CASE("rotary: jvp is the transpose of vjp, along queries and keys together and alone") {
  rotary_configurations const all(queries, keys, width);
  auto const q = drawn(of_queries, 1), k = drawn(of_keys, 2), v = drawn(of_keys, 3), d = drawn(of_queries, 4),
             dq = drawn(of_queries, 5), dk = drawn(of_keys, 6);
  using view = tensor<double const>;
  view const Q(q, of_queries), K(k, of_keys), V(v, of_keys), dQ(dq, of_queries), dK(dk, of_keys);
  for (kernel::rotary const& kernel : all.kernels()) {
    auto const op = attention(kernel, mask::causal{});
    auto const g = vjp(cpu<double>{2}, op, {.q = Q, .k = K, .v = V}, {.out = view(d, of_queries)});
    double const by_q = inner(g.of(field::q).values, dq), by_k = inner(g.of(field::k).values, dk);
    auto const both = jvp(cpu<double>{2}, op, {.q = {Q, dQ}, .k = {K, dK}, .v = V});
    auto const queries_alone = jvp(cpu<double>{2}, op, {.q = {Q, dQ}, .k = K, .v = V});
    auto const keys_alone = jvp(cpu<double>{2}, op, {.q = Q, .k = {K, dK}, .v = V});
    CHECK(std::fabs(inner(both.out_along.values, d) - (by_q + by_k)) < 1e-11);
    CHECK(std::fabs(inner(queries_alone.out_along.values, d) - by_q) < 1e-11);
    CHECK(std::fabs(inner(keys_alone.out_along.values, d) - by_k) < 1e-11);
    CHECK(std::fabs(by_q) > 1e-3);
    CHECK(std::fabs(by_k) > 1e-3);
  }
}

}  // namespace
}  // namespace attune::test
