// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <attune/core/lse.hpp>

#include "../check.hpp"

namespace attune::test {
namespace {

TEST_CASE("natural_lse: holds the view it was made of; absent by default") {
  float memory[3] = {1, 2, 3};
  natural_lse const lse(tensor<float>(memory, {1, 1, 3, 1}));
  CHECK(lse.values.data() == memory);
  CHECK(lse.values.extents() == shape{1, 1, 3, 1});
  CHECK(natural_lse<float>{}.values.absent());
}

}  // namespace
}  // namespace attune::test
