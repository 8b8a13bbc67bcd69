// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <attune/core/dual.hpp>
#include <attune/policies/length_scale/yarn.hpp>

#include "../../check.hpp"
#include "../row.hpp"

namespace attune::test {
namespace {

double scaled(double extension, double s) { return length_scale::yarn{extension}.bind(row_with(2)).scale(s); }

TEST_CASE("yarn: s (0.1 log(extension) + 1)^2, whatever K") {
  CHECK(near(scaled(std::exp(10.0), 3), 12));
  CHECK(near(scaled(4, 3), 3 * (0.2 * ln2 + 1) * (0.2 * ln2 + 1)));
  CHECK(length_scale::yarn{4}.bind(row_with(7)).scale(3.0) == scaled(4, 3));
}

TEST_CASE("yarn: no bit changes up to the training length; -inf stays") {
  for (double extension : {1e-300, 0.5, 1.0}) CHECK(scaled(extension, 0.1) == 0.1);
  CHECK(scaled(4, -inf) == -inf);
}

TEST_CASE("yarn: at an extension of 1 the derivative is that of the constant") {
  length_scale::yarn y{1};
  y.extension.number(0);
  row<dual<double, 1>> r{};
  r.numbers.seeds = {.count = 1};
  CHECK(y.bind(r).factor.tangent[0] == 0);
}

}  // namespace
}  // namespace attune::test
