// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "parity.hpp"

namespace attune::cuda_test {

TEST_CASE("cuda: Principled Attention") {
  auto const op = principled_attention({.alpha = 0.5, .beta = 0.3, .gamma = 0.1}, visible());
  check_parity<float, true>(op);
  check_parity<double, false>(op);
}

}  // namespace attune::cuda_test
