// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Gradients of a score that is not linear in a sum over earlier keys, against differences.
#include <vector>

#include <attune/attune.hpp>
#include <attune/reference.hpp>
#include <attune/testing/gradient_check.hpp>

#include "../../support/report.hpp"
#include "../../support/stick_breaking.hpp"
#include "../../unit/check.hpp"

namespace attune::test {
namespace {

auto const op = attention(
    kernel::dot_product{} + counted_distance<contraction::earlier_sum_with_own<contraction::dot, sigmoid_of>>{},
    mask::causal_window{70});

TEST_CASE("ordered sums: gradients of positions that count agree with differences") {
  check_passed(testing::check_gradients(op, {.heads = 2, .queries = 4, .keys = 7, .width = 3, .key_heads = 1}, 4));
}

}  // namespace
}  // namespace attune::test
