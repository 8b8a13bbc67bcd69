// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include <attune/operators/presets.hpp>
#include <attune/policies.hpp>

#include "../gradients.hpp"

namespace attune::test {
namespace {

gradient_extents const sizes{.heads = 4, .key_heads = 2, .value_heads = 2, .queries = 40, .keys = 90, .offset = 40};

TEST_CASE("gradients of tiles: queries and keys that are turned") {
  std::vector<float> angles;
  for (int n = 0; n < 90; ++n)
    for (int part = 0; part < 2; ++part)
      for (int r = 0; r < 24; ++r) {
        double const angle = n * std::pow(100.0, -r / 24.0);
        angles.push_back(float(part == 0 ? std::cos(angle) : std::sin(angle)));
      }
  stored_view const table = tensor<float const>(angles, {1, 1, 90, 48});  // 48 of 64 features are turned
  CHECK(gradients_of<bfloat16, 64>(attention(kernel::rotary{.angles = table}, mask::causal{}), sizes, 4) == "");
  CHECK(gradients_of<bfloat16, 64>(
            attention(kernel::rotary{.angles = table, .layout = rotary_layout::interleaved}, mask::causal{}), sizes,
            4) == "");
  CHECK(gradients_of<bfloat16, 64>(
            attention(kernel::rotary{.angles = table, .keys = rotary_keys::turned}, mask::causal{}), sizes, 4) == "");
}
TEST_CASE("gradients of tiles: queries times the numbers of a table") {
  std::vector<float> metric;
  for (int d = 0; d < 64; ++d) metric.push_back(0.2f + 0.1f * float(d % 7));
  tensor<float const> const table(metric, {1, 1, 1, 64});
  CHECK(gradients_of<bfloat16, 64>(bilinear_attention(table, mask::causal{}), sizes, 4) == "");
}

}  // namespace
}  // namespace attune::test
