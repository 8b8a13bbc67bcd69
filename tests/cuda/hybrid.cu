// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "parity.hpp"

namespace attune::cuda_test {

TEST_CASE("cuda: hybrid") {
  auto const op = hybrid_attention(0.5, visible());
  check_parity<float, true>(op);
  check_parity<double, false>(op);
}

}  // namespace attune::cuda_test
