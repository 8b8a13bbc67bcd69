// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A score that is not linear in a sum over earlier keys, by every call of the CPU executor, against 50 digits.
#include <vector>

#include <attune/attune.hpp>
#include <attune/reference.hpp>
#include <attune/testing/forward_check.hpp>

#include "../../support/report.hpp"
#include "../../support/stick_breaking.hpp"
#include "../../unit/check.hpp"

namespace attune::test {
namespace {

auto const op = attention(
    kernel::dot_product{} + counted_distance<contraction::earlier_sum_with_own<contraction::dot, sigmoid_of>>{},
    mask::causal_window{70});

TEST_CASE("ordered sums: positions that count earlier keys agree with 50 digits") {
  check_passed(testing::check_forward(op, {.heads = 2, .queries = 21, .keys = 90, .width = 4, .key_heads = 1}, 2));
}

}  // namespace
}  // namespace attune::test
