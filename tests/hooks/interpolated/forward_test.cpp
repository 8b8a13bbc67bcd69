// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Rows that are read at an ordered sum, by every call of the CPU executor, against 50 digits.
#include <attune/attune.hpp>
#include <attune/reference.hpp>
#include <attune/testing/forward_check.hpp>

#include "../../support/cope.hpp"
#include "../../support/report.hpp"
#include "../../unit/check.hpp"

namespace attune::test {
namespace {

TEST_CASE("interpolated rows: contextual positions agree with 50 digits") {
  check_passed(testing::check_forward(attention(cope{}, mask::causal{}),
                                      {.heads = 2, .queries = 41, .keys = 90, .width = 5, .key_heads = 1}, 2));
}
TEST_CASE("interpolated rows: positions from earlier keys agree with 50 digits, under a cap") {
  check_passed(testing::check_forward(
      attention((cope_before{} + kernel::alibi{0.1}) | kernel::softcap{5}, mask::window{35}, normalizer::off_by_one{}),
      {.heads = 2, .queries = 40, .keys = 77, .width = 24, .key_heads = 1}, 3));
}

}  // namespace
}  // namespace attune::test
