// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <attune/core/activation.hpp>
#include <attune/core/dual.hpp>

#include "../check.hpp"

namespace attune::test {
namespace {

TEST_CASE("activations: values") {
  CHECK(activate(activation::identity, -3.5) == -3.5);
  CHECK(near(activate(activation::sigmoid, ln3), 0.75));
  CHECK(near(activate(activation::softplus, 0.0), ln2));
  CHECK(activate(activation::linear_clipping, 0.0) == 0.5);
  CHECK(near(activate(activation::linear_clipping, 2.0), 0.7));
  CHECK(activate(activation::linear_clipping, -5.0) == 0);
  CHECK(activate(activation::linear_clipping, 5.0) == 1);
  CHECK(activate(activation::linear_clipping, 1e300) == 1);
  CHECK(activate(activation::linear_clipping, -inf) == 0);
}

TEST_CASE("activations: a NaN stays one") {
  for (activation f : {activation::identity, activation::sigmoid, activation::softplus, activation::linear_clipping})
    CHECK(std::isnan(activate(f, nan)));
}

TEST_CASE("activations: derivatives, 0 at the corners of linear_clipping") {
  auto const slope = [](activation f, double x) { return activate(f, dual<double, 1>::variable(x, 0)).tangent[0]; };
  CHECK(slope(activation::identity, 7) == 1);
  CHECK(near(slope(activation::sigmoid, ln3), 0.1875));
  CHECK(near(slope(activation::softplus, ln3), 0.75));
  CHECK(slope(activation::linear_clipping, 4.9) == 0.1);
  CHECK(slope(activation::linear_clipping, -4.9) == 0.1);
  for (double x : {5.0, -5.0, 6.0, -6.0}) CHECK(slope(activation::linear_clipping, x) == 0);
}

}  // namespace
}  // namespace attune::test
