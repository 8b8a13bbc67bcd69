// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A value term: every call against 50 digits.
#include <attune/testing/forward_check.hpp>

#include "../../support/report.hpp"
#include "operators.hpp"

namespace attune::test {

TEST_CASE("value term: every call, ground") {
  check_passed(testing::check_forward(
      term_ground(), {.batch = 2, .queries = 40, .keys = 75, .width = 8, .value_width = value_width, .gate_width = 4},
      1));
}

}  // namespace attune::test
