// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "parity.hpp"

namespace attune::cuda_test {

TEST_CASE("cuda: elliptical") {
  check_parity_of<float, true>([](auto& learned) { return elliptical_attention(learned(1, 1, 64), visible()); });
}
TEST_CASE("cuda: bilinear") {
  check_parity_of<float, true>([](auto& learned) { return bilinear_attention(learned(1, 1, 64), visible()); });
}
TEST_CASE("cuda: relative bias") {
  check_parity_of<float, true>([](auto& learned) { return relative_bias_attention(learned(4, 33, 1), visible()); });
}
TEST_CASE("cuda: T5") {
  check_parity_of<float, true>([](auto& learned) { return t5_attention({learned(4, 32, 1)}, visible()); });
}

}  // namespace attune::cuda_test
