// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The same random calls as wrong_calls_test.cpp, of operators by windows and by features.
#include <support/wild_line.hpp>

namespace attune::test {
namespace {

TEST_SUITE("wrong calls") {
  TEST_CASE("windows on a line") { check_wild_lines("windowed", line::windowed{0.5}); }
  TEST_CASE("features on a line") { check_wild_lines("nystroem", line::nystroem{0.5, 64}); }
}

}  // namespace
}  // namespace attune::test
