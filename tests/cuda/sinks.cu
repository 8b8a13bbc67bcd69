// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "parity.hpp"

namespace attune::cuda_test {

TEST_CASE("cuda: off by one") { check_parity<float, true>(off_by_one_attention(visible())); }
TEST_CASE("cuda: a sink") { check_parity<float, true>(sink_attention(0.5, visible())); }
TEST_CASE("cuda: a margin") { check_parity<float, true>(margin_attention(0.5, 0.1, visible())); }
TEST_CASE("cuda: SSMax") { check_parity<float, true>(ssmax_attention({.scale = 0.4, .bias = 0.1}, visible())); }

}  // namespace attune::cuda_test
