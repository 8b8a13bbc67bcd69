// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <attune/policies/gate/none.hpp>
#include <attune/policies/gate/softplus.hpp>

#include "../../check.hpp"
#include "../row.hpp"

namespace attune::test {
namespace {

double gated(double beta, double s, double g) { return gate::softplus{beta}.bind(row_with(0)).gate(s, g); }

TEST_CASE("softplus gate: s - softplus(beta) softplus(-g)") {
  double const unit = std::log(std::expm1(1.0));        // softplus(unit) = log(1 + e - 1) = 1
  CHECK(near(gated(0, 1, 0), 1 - ln2 * ln2));           // both are log(1 + 1)
  CHECK(near(gated(unit, 3, ln3), 3 - 2 * ln2 + ln3));  // softplus(-log 3) = log(4 / 3)
  CHECK(near(gated(unit, 3, -ln3), 3 - 2 * ln2));       // softplus(log 3) = log 4
  CHECK(near(gated(unit, 0, -1000), -1000));            // no overflow
  CHECK(gate::given_softplus{0.5}.bind(row_with(0)).gate(1.0, 2.0) == gated(0.5, 1, 2));
}

TEST_CASE("softplus gate: a gate far open subtracts e^-g, not 0") {
  CHECK(near(gated(0, 0, 100), -ln2 * 3.720075976020836e-44));
}

TEST_CASE("softplus gate: limits") {
  CHECK(gated(0, 5, inf) == 5);
  CHECK(gated(0, 5, -inf) == -inf);  // switched off
  CHECK(gated(-700, 5, -inf) == -inf);
  for (double g : {0.0, 3.0, inf, -inf, -1e300}) CHECK(gated(-inf, 5, g) == 5);  // no gate, whatever g is
  CHECK(gated(-inf, -inf, -inf) == -inf);
  CHECK(gated(0, -inf, 2) == -inf);
  CHECK(std::isnan(gated(0, 1, nan)));
}

TEST_CASE("no gate: binds to nothing") { CHECK(std::is_empty_v<decltype(gate::none{}.bind(row_with(0)))>); }

}  // namespace
}  // namespace attune::test
