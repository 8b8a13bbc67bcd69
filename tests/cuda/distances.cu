// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "parity.hpp"

namespace attune::cuda_test {

TEST_CASE("cuda: RBF") { check_parity<float, true>(rbf_attention(20, visible())); }
TEST_CASE("cuda: L2") { check_parity<float, true>(l2_attention({}, visible())); }
TEST_CASE("cuda: scaled RBF") { check_parity<float, true>(scaled_rbf_attention(0.05, visible())); }
TEST_CASE("cuda: inverse distance") { check_parity<float, true>(inverse_distance_attention(1, visible())); }
TEST_CASE("cuda: elliptical") {
  check_parity_of<float, true>([](auto& learned) { return elliptical_attention(learned(1, 1, 64), visible()); });
}
TEST_CASE("cuda: bilinear") {
  check_parity_of<float, true>([](auto& learned) { return bilinear_attention(learned(1, 1, 64), visible()); });
}

}  // namespace attune::cuda_test
