// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "parity.hpp"

namespace attune::cuda_test {

TEST_CASE("cuda: TUPE") { check_parity<float, true>(tupe_attention(visible())); }
TEST_CASE("cuda: SMCA") { check_parity<float, true>(smca_attention(0.2, visible())); }
TEST_CASE("cuda: GOAT") { check_parity<float, true>(goat_attention(8, visible())); }

}  // namespace attune::cuda_test
