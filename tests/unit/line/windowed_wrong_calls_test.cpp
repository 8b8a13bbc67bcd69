// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The same random calls as wrong_calls_test.cpp, of operators by windows and by features.
#include <cmath>

#include <support/wild_line.hpp>

namespace attune::test {
namespace {

// Each key is a landmark here. The jitter, 1e-13 n, moves the n kernel values of a row by at most sqrt(1e-13 n) / 2 in
// Euclidean norm, so by n sqrt(1e-13) / 2 together. Of a row of mass e^lse that is a share. The drawn values are below 6.
struct within_jitter {
  double operator()(double lse, index_t keys) const {
    double const share = double(keys) * std::sqrt(1e-13) / 2 * std::exp(-lse);
    return share < 1 ? 1e-5 + 6 * share / (1 - share) : INFINITY;
  }
};

TEST_SUITE("wrong calls") {
  TEST_CASE("windows on a line") { check_wild_lines("windowed", line::windowed{0.5}); }
  TEST_CASE("features on a line") { check_wild_lines("nystroem", line::nystroem{0.5, 64}, within_jitter{}); }
  // Seeds with queries far from every key: errors of 2.5e-4 and 1.3e-4, relative to 1 + |out|.
  TEST_CASE("features on a line: rows of small mass") {
    tally calls;
    for (std::uint64_t seed : {63366308275409u, 63366308280382u})
      check_wild_line(line::nystroem{0.5, 64}, seed, calls, within_jitter{});
    CHECK(calls.computed == 2);
  }
}

}  // namespace
}  // namespace attune::test
