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
  // Known: off by 2.7e-4 and 1.4e-4 of at most 1.1e-4, found by fresh seeds on 2026-11-28.
  TEST_CASE("features on a line, known faults" * doctest::may_fail()) {
    tally calls;
    for (std::uint64_t seed : {63366308275409u, 63366308280382u}) check_wild_line(line::nystroem{0.5, 64}, seed, calls);
  }
}

}  // namespace
}  // namespace attune::test
