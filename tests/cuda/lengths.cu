// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "parity.hpp"

namespace attune::cuda_test {

TEST_CASE("cuda: log n") { check_parity<float, true>(log_n_attention(64, visible())); }
TEST_CASE("cuda: YaRN") { check_parity<float, true>(yarn_attention(4, visible())); }
TEST_CASE("cuda: two-sided gate") { check_parity<float, true>(two_sided_attention(0.3, visible())); }
TEST_CASE("cuda: softcap") { check_parity<float, true>(softcap_attention(20, visible())); }

}  // namespace attune::cuda_test
