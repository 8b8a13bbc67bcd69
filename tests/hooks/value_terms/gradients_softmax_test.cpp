// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A value term: gradients against differences.
#include <sstream>

#include <attune/testing/gradient_check.hpp>

#include "../../unit/check.hpp"
#include "operators.hpp"

namespace attune::test {

TEST_CASE("value term: gradients, softmax") {
  auto const report = testing::check_gradients(
      term_softmax(), {.batch = 1, .queries = 3, .keys = 5, .width = 3, .value_width = value_width, .gate_width = 2},
      1);
  std::ostringstream text;
  text << report;
  INFO(text.str());
  CHECK(report.passed());
}

}  // namespace attune::test
