// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Forward of an operator for each kind of row, with the numbers twice as wide.
#include "parity.hpp"

namespace attune::cuda_test {

TEST_CASE("cuda: softmax in double") { check_parity<double, false>(softmax_attention(visible())); }
TEST_CASE("cuda: Principled Attention in double") {
  check_parity<double, false>(principled_attention({.alpha = 0.5, .beta = 0.3, .gamma = 0.1}, visible()));
}
TEST_CASE("cuda: hybrid in double") { check_parity<double, false>(hybrid_attention(0.5, visible())); }
TEST_CASE("cuda: self-adjusted in double") { check_parity<double, false>(self_adjusted_attention(visible())); }
TEST_CASE("cuda: entmax in double") { check_parity<double, false>(entmax_attention(1.5, visible())); }
TEST_CASE("cuda: top-k in double") { check_parity<double, false>(top_k_attention(7, visible())); }

}  // namespace attune::cuda_test
