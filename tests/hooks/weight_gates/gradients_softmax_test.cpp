// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A weight gate: gradients against differences.
#include <attune/testing/gradient_check.hpp>

#include "../../support/report.hpp"
#include "operators.hpp"

namespace attune::test {

TEST_CASE("weight gate: gradients, softmax") {
  check_passed(
      testing::check_gradients(gated_softmax(), {.batch = 1, .queries = 3, .keys = 5, .width = 3, .gate_width = 2}, 1));
}

}  // namespace attune::test
