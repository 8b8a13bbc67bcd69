// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A value term: every call against 50 digits.
#include <sstream>

#include <attune/testing/forward_check.hpp>

#include "../../unit/check.hpp"
#include "operators.hpp"

namespace attune::test {

TEST_CASE("value term: every call, softmax") {
  auto const report = testing::check_forward(
      term_softmax(), {.batch = 2, .queries = 40, .keys = 75, .width = 8, .value_width = value_width, .gate_width = 4},
      1);
  std::ostringstream text;
  text << report;
  INFO(text.str());
  CHECK(report.passed());
}

}  // namespace attune::test
