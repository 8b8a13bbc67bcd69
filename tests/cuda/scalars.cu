// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "parity.hpp"

namespace attune::cuda_test {

TEST_CASE("cuda: Scalar Sort") { check_parity<float, true>(scalar_sort_attention(0.5, visible())); }
TEST_CASE("cuda: scalar Laplacian") { check_parity<float, true>(scalar_laplacian_attention(0.5, visible())); }
TEST_CASE("cuda: ALiBi") { check_parity<float, true>(alibi_attention(0.1, visible())); }
TEST_CASE("cuda: bias") { check_parity<float, true>(biased_attention(visible())); }

}  // namespace attune::cuda_test
