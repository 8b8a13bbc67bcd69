// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "parity.hpp"

namespace attune::cuda_test {

TEST_CASE("cuda: self-adjusted") {
  auto const op = self_adjusted_attention(visible());
  check_parity<float, true>(op);
  check_parity<double, false>(op);
}

}  // namespace attune::cuda_test
