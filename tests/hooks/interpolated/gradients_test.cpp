// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Gradients of rows that are read at an ordered sum, against differences: of q, k, the rows and every parameter.
#include <vector>

#include <attune/attune.hpp>
#include <attune/reference.hpp>
#include <attune/testing/gradient_check.hpp>

#include "../../support/cope.hpp"
#include "../../support/report.hpp"
#include "../../unit/check.hpp"

namespace attune::test {
namespace {

std::vector<double> const rates{0.7, 1.4};

TEST_CASE("interpolated rows: gradients of contextual positions agree with differences") {
  check_passed(testing::check_gradients(attention(cope{per_head(rates), 0.8}, mask::causal{}),
                                        {.heads = 2, .queries = 5, .keys = 8, .width = 3, .key_heads = 1}, 3));
}
TEST_CASE("interpolated rows: gradients of positions from earlier keys agree with differences") {
  check_passed(testing::check_gradients(attention(cope_before{} + kernel::alibi{0.1}, mask::window{35}),
                                        {.heads = 2, .queries = 4, .keys = 7, .width = 4, .key_heads = 1}, 4));
}

}  // namespace
}  // namespace attune::test
