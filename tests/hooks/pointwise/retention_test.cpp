// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// RetNet's divisor, max(|sum|, 1): gradients on both sides of the kink, and error bounds where a sum cancels.
#include <attune/attune.hpp>
#include <attune/certify/gradient_bound.hpp>

#include "../../support/every_call.hpp"
#include "../../support/factor_of_sums.hpp"

namespace attune::test {
namespace {

TEST_CASE("retention: every call") {
  auto const op = attention(kernel::dot_product{}, retention_sum{}, mask::causal{});
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    check_every_call(op, {.heads = 2, .queries = 5, .keys = 8, .width = 3}, seed);
  auto const many = testing::check_forward(op, {.heads = 1, .queries = 70, .keys = 300, .width = 8}, 3);
  INFO(printed(many));
  CHECK(many.passed());  // sums of 300 terms of both signs, some of them next to the kink
}

TEST_CASE("retention: a gradient bound is refused") {
  auto const op = attention(kernel::given_scores{}, retention_sum{});
  testing::detail::normal_numbers random(1);
  testing::drawn_problem<std::remove_const_t<decltype(op)>> const p({.queries = 2, .keys = 3}, random);
  CHECK_THROWS_WITH_AS(
      certify::gradient_error_bound(op, p.inputs<any_tensor>(), p.cotangents<any_tensor>()),
      "attune::gradient_error_bound: the normalizer has a weight_factor of the sum of the masses; expected "
      "weight_factor() without arguments: the bound knows no kinks of a whole row",
      error);
}

}  // namespace
}  // namespace attune::test
