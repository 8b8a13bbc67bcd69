// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "parity.hpp"

namespace attune::cuda_test {

TEST_CASE("cuda: entmax") { check_parity<float, true>(entmax_attention(1.5, visible())); }
TEST_CASE("cuda: top-k") { check_parity<float, true>(top_k_attention(7, visible())); }
TEST_CASE("cuda: sparsemax") { check_parity<float, true>(sparsemax_attention(visible())); }
TEST_CASE("cuda: entmax at 3/2") { check_parity<float, true>(entmax15_attention(visible())); }

}  // namespace attune::cuda_test
