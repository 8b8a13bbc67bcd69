// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A value term: gradients against differences.
#include <attune/testing/gradient_check.hpp>

#include "../../support/report.hpp"
#include "operators.hpp"

namespace attune::test {

TEST_CASE("value term: gradients, share") {
  check_passed(testing::check_gradients(
      term_share(), {.batch = 1, .queries = 3, .keys = 5, .width = 3, .value_width = value_width, .gate_width = 2}, 1));
}

}  // namespace attune::test
