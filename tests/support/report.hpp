// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   check_passed(testing::check_forward(op, extents, seed))      a failure prints the report
#pragma once

#include <sstream>
#include <string>

#include <doctest/doctest.h>

namespace attune::test {

/// The text of a report.
template <class Report>
std::string printed(Report const& r) {
  std::ostringstream to;
  to << r;
  return to.str();
}

/// Checks that a report says passed.
template <class Report>
void check_passed(Report const& r) {
  INFO(printed(r));
  CHECK(r.passed());
}

}  // namespace attune::test
