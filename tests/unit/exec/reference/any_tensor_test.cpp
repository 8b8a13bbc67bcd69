// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <attune/exec/reference/any_tensor.hpp>

#include "../../check.hpp"

namespace attune::test {
namespace {

TEST_CASE("any_tensor: floats and doubles, read as double through their strides") {
  float floats[6] = {0.1f, 1, 2, 3, 4, 5};
  double const doubles[6] = {0.1, 1, 2, 3, 4, 5};
  any_tensor const f = tensor<float>(floats, {1, 1, 3, 2}, {0, 0, 1, 3});
  any_tensor const d = tensor<double const>(doubles + 5, {1, 1, 3, 2}, {0, 0, -2, -1});
  CHECK(f.extents() == shape{1, 1, 3, 2});
  CHECK(f(0, 0, 0, 0) == double(0.1f));  // exactly
  CHECK(f(0, 0, 2, 1) == 5);
  CHECK(d(0, 0, 0, 0) == 5);
  CHECK(d(0, 0, 1, 1) == 2);
  CHECK(d(0, 0, 2, 1) == 0.1);
  CHECK(any_tensor{}.extents() == shape{0, 0, 0, 0});
}

}  // namespace
}  // namespace attune::test
