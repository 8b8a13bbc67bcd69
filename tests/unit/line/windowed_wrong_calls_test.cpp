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
  // Fresh seeds of 2026-11-28: the errors, relative to 1 + |out|, are 2.5e-4 and 1.3e-4. The calls above allow 1e-4.
  TEST_CASE("features on a line: the two largest errors seen") {
    tally calls;
    for (std::uint64_t seed : {63366308275409u, 63366308280382u})
      check_wild_line(line::nystroem{0.5, 64}, seed, calls, 5e-4);
    CHECK(calls.computed == 2);
  }
}

}  // namespace
}  // namespace attune::test
