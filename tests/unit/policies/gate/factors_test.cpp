// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <attune/policies/gate/no_factor.hpp>
#include <attune/policies/gate/sigmoid.hpp>
#include <attune/policies/gate/two_sided.hpp>

#include "../../check.hpp"
#include "../row.hpp"

namespace attune::test {
namespace {

double gated(double beta, double s, double g) { return gate::two_sided{beta}.bind(row_with(0)).gate(s, g); }

TEST_CASE("two-sided gate: s + softplus(beta) tanh(g / 2)") {
  double const unit = std::log(std::expm1(1.0));  // softplus(unit) = 1
  CHECK(near(gated(unit, 3, 2 * ln3), 3.8));      // tanh(log 3) = 0.8
  CHECK(near(gated(unit, 3, -2 * ln3), 2.2));
  CHECK(near(gated(0, 3, 2 * ln3), 3 + 0.8 * ln2));
  CHECK(gated(unit, 3, 0) == 3);
  CHECK(near(gated(unit, 0, 1e-20), 5e-21));
  CHECK(gate::given_two_sided{0.5}.bind(row_with(0)).gate(1.0, 2.0) == gated(0.5, 1, 2));
}

TEST_CASE("two-sided gate: limits") {
  double const unit = std::log(std::expm1(1.0));
  CHECK(near(gated(unit, 5, inf), 6));  // bounded: it never switches a key off
  CHECK(near(gated(unit, 5, -inf), 4));
  for (double g : {0.0, 3.0, inf, -inf}) CHECK(gated(-inf, 5, g) == 5);
  CHECK(gated(0, -inf, 2) == -inf);
  CHECK(std::isnan(gated(0, 1, nan)));
}

TEST_CASE("sigmoid factors: of the output and of values") {
  auto const output = gate::sigmoid_output{}.bind(row_with(0));
  auto const value = gate::sigmoid_value{}.bind(row_with(0));
  for (auto const& f : {output, value}) {
    CHECK(near(f.factor(ln3), 0.75));
    CHECK(f.factor(inf) == 1);
    CHECK(f.factor(-inf) == 0);
    CHECK(near(f.factor(-100.0), 3.720075976020836e-44));
    CHECK(std::isnan(f.factor(nan)));
  }
  CHECK(gate::sigmoid_output::role == policy_role::output_gate);
  CHECK(gate::sigmoid_value::role == policy_role::value_gate);
}

TEST_CASE("no factor: 1, whatever the input") {
  CHECK(gate::no_output_factor{}.bind(row_with(0)).factor(nan) == 1);
  CHECK(gate::no_value_factor{}.bind(row_with(0)).factor(nan) == 1);
}

}  // namespace
}  // namespace attune::test
