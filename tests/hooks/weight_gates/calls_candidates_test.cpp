// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A weight gate: every call against 50 digits.
#include <sstream>

#include <attune/testing/forward_check.hpp>

#include "../../unit/check.hpp"
#include "operators.hpp"

namespace attune::test {

TEST_CASE("weight gate: every call, candidates") {
  auto const report = testing::check_forward(
      gated_candidates(), {.batch = 2, .queries = 5, .keys = 75, .width = 8, .value_width = 5, .gate_width = 4}, 1);
  std::ostringstream text;
  text << report;
  INFO(text.str());
  CHECK(report.passed());
}

}  // namespace attune::test
