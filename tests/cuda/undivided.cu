// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "parity.hpp"

namespace attune::cuda_test {

TEST_CASE("cuda: Gaussian") { check_parity<float, true>(gaussian_attention(20, visible())); }
TEST_CASE("cuda: sigmoid") { check_parity<float, true>(sigmoid_attention({}, visible())); }
TEST_CASE("cuda: sliced ReLU") { check_parity<float, true>(sliced_relu_attention<sliced_relu_form::sum>(visible())); }
TEST_CASE("cuda: mean sliced ReLU") {
  check_parity<float, true>(sliced_relu_attention<sliced_relu_form::mean>(visible()));
}
TEST_CASE("cuda: centered sliced ReLU") {
  check_parity<float, true>(sliced_relu_attention<sliced_relu_form::centered>(visible()));
}
TEST_CASE("cuda: normalized sliced ReLU") {
  check_parity<float, true>(sliced_relu_attention<sliced_relu_form::normalized>(visible()));
}

}  // namespace attune::cuda_test
