// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// weight_factor(earned, visible): RetNet divides a row by max(|sum|, 1), a divisor that no shipped normalizer has.
#include "../../support/factor_of_sums.hpp"

#include <cmath>
#include <vector>

#include <attune/attune.hpp>

#include "../../support/every_call.hpp"

namespace attune::test {
namespace {

TEST_CASE("factor of sums: rows without keys, above the floor and below it, by hand") {
  auto const op = attention(kernel::given_scores{}, retention_sum{}, mask::causal{});
  std::vector<double> const scores{9, 9, 3, 9, 0.25, -0.5, -4, 1}, values{2, 10}, one(4, 1);
  tensor<double const> const S(scores, {1, 1, 4, 2}), V(values, {1, 1, 2, 1}), D(one, {1, 1, 4, 1});
  auto const in = [&]<class View>(View) {
    return inputs<std::remove_const_t<decltype(op)>, View>{.v = V, .scores = S, .offset = -1};
  };
  std::vector<double> out(4);
  forward(cpu<double>{serial{}}, op, in(tensor<double const>()), {.out = tensor<double>(out, {1, 1, 4, 1})});
  CHECK(out[0] == 0);               // no key
  CHECK(out[1] == 2);               // 3 v0 / 3
  CHECK(out[2] == 0.5 - 5);         // |sum| = 0.25: divided by 1
  CHECK(out[3] == (-8. + 10) / 3);  // |sum| = 3
  auto const check = [&](auto const& g) {
    CHECK(g(0, 0, 0, 0) == 0);
    CHECK(g(0, 0, 1, 0) == 0);  // the only key: its score cancels
    CHECK(g(0, 0, 2, 0) == 2);
    CHECK(g(0, 0, 2, 1) == 10);
    // out = n / -s with n = 2 a + 10 b and s = a + b: d/da = -(2 s - n) / s^2
    CHECK(g(0, 0, 3, 0) == doctest::Approx((6. + 2) / 9));
    CHECK(g(0, 0, 3, 1) == doctest::Approx((30. + 2) / 9));
  };
  check(vjp(cpu<double>{serial{}}, op, in(tensor<double const>()), {.out = D}).of(field::scores));
  check(vjp(reference<double>{}, op, in(any_tensor()), {.out = D}).of(field::scores));
}

TEST_CASE("factor of sums: every call of a row with every trait") {
  check_every_call(attention(kernel::dot_product{}, crowded_sum{}, mask::causal{}),
                   {.heads = 2, .queries = 4, .keys = 7, .width = 3}, 3);
}

}  // namespace
}  // namespace attune::test
