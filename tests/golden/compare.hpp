// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Entry-by-entry comparison of one computed tensor with its expectation.
#pragma once

#include <string>
#include <vector>

#include "case_file.hpp"

namespace attune::golden {

struct difference {
  bool accepted = true;
  std::size_t worst = 0;         ///< flat index of the entry with the largest ratio
  double got = 0, expected = 0;  ///< of that entry
  double ratio = 0;  ///< |got - expected| / bound; infinite where equality is asked for or a non-finite entry differs
  std::string problem;  ///< why the tensors could not be compared at all (missing, wrong size)
};

/// Accepts an entry if it equals the expectation (nan equals nan, -0 equals 0) or if both are finite and differ by at
/// most the bound. `got` of another size than expected is not accepted.
difference compare(tensor const& expected, std::vector<double> const& got, std::vector<double> const& bounds);

/// "[2,0] got 0.25, expected 0.5, error / tolerance 1e+14" or the problem.
std::string describe(difference const& d, std::vector<index> const& shape);

}  // namespace attune::golden
