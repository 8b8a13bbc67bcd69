// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "parity.hpp"

namespace attune::cuda_test {

TEST_CASE("cuda: softmax") { check_parity<float, true>(softmax_attention(visible())); }
TEST_CASE("cuda: Principled Attention") {
  check_parity<float, true>(principled_attention({.alpha = 0.5, .beta = 0.3, .gamma = 0.1}, visible()));
}
TEST_CASE("cuda: hybrid") { check_parity<float, true>(hybrid_attention(0.5, visible())); }
TEST_CASE("cuda: self-adjusted") { check_parity<float, true>(self_adjusted_attention(visible())); }

}  // namespace attune::cuda_test
