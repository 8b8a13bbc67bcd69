// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The exact result of an operator that reads a row at an ordered sum: intervals need no integer part of the index.
#include <random>
#include <vector>

#include <doctest/doctest.h>
#include <support/cope.hpp>

#include <attune/certify/enclosure/enclose.hpp>
#include <attune/exec/reference/multiprecision.hpp>

TEST_CASE("enclosures of rows that are read at an index agree with 50 digits") {
  using namespace attune;
  constexpr index_t queries = 3, keys = 6, width = 4, entries = 4;
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal;
  auto const draw = [&](index_t n) {
    std::vector<float> x;
    for (index_t i = 0; i < n; ++i) x.push_back(normal(random));
    return x;
  };
  auto const q = draw(queries * width), k = draw(keys * width), v = draw(keys * 2), z = draw(queries * entries),
             d = draw(queries * 2);
  tensor<float const> const Q(q, {1, 1, queries, width}), K(k, {1, 1, keys, width}), V(v, {1, 1, keys, 2}),
      Z(z, {1, 1, queries, entries}), D(d, {1, 1, queries, 2});
  auto const op = attention(test::cope{}, mask::causal{});
  auto const exact = forward(reference<digits50>{}, op, {.q = Q, .k = K, .v = V, .position_scores = Z}).at(0, 0);
  auto const e = certify::enclose(op, {.q = Q, .k = K, .v = V, .position_scores = Z});
  CHECK(e.undecided() == 0);
  for (index_t i = 0; i < queries; ++i)
    for (index_t c = 0; c < 2; ++c) CHECK(e.at_out(0, 0, i, c).rounded == double(exact.out(i, c)));
  auto const right = vjp(reference<digits50>{}, op, {.q = Q, .k = K, .v = V, .position_scores = Z}, {.out = D});
  auto const g = certify::enclose_vjp(op, {.q = Q, .k = K, .v = V, .position_scores = Z}, {.out = D});
  for (field const f : {field::q, field::k, field::v, field::position_scores})
    for (std::size_t n = 0; n < g.of(f).values.size(); ++n) {
      CHECK(g.of(f).values[n].decided);
      CHECK(g.of(f).values[n].rounded == double(right.of(f).values[n]));
    }
}
