// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "parity.hpp"

namespace attune::cuda_test {

TEST_CASE("cuda: value gate") { check_parity<float, true>(value_gated_attention(visible())); }
TEST_CASE("cuda: output gate") { check_parity<float, true>(gated_attention(visible())); }
TEST_CASE("cuda: affine, output gate") { check_parity<float, true>(affine_gated_attention(0.8, 0.9, visible())); }
TEST_CASE("cuda: affine") { check_parity<float, true>(affine_scaled_attention(0.8, 0.9, visible())); }

}  // namespace attune::cuda_test
