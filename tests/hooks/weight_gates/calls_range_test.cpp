// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A weight gate: every call against 50 digits.
#include <attune/testing/forward_check.hpp>

#include "../../support/report.hpp"
#include "operators.hpp"

namespace attune::test {

TEST_CASE("weight gate: every call, range") {
  check_passed(testing::check_forward(
      gated_range(), {.batch = 2, .queries = 5, .keys = 75, .width = 8, .value_width = 5, .gate_width = 4}, 1));
}

}  // namespace attune::test
