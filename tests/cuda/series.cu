// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "parity.hpp"

namespace attune::cuda_test {

TEST_CASE("cuda: Transformer-XL") {
  check_parity_of<float, true>([](auto& learned) {
    return transformer_xl_attention(learned(4, 1, 64), learned(4, 1, 64), learned(1, 401, 64), visible());
  });
}
TEST_CASE("cuda: GOAT, Fourier") {
  check_parity_of<float, true>([](auto& learned) {
    return goat_fourier_attention(8, {learned(4, 5, 1), learned(4, 5, 1), learned(4, 5, 1)}, visible());
  });
}
TEST_CASE("cuda: relative bias") {
  check_parity_of<float, true>([](auto& learned) { return relative_bias_attention(learned(4, 33, 1), visible()); });
}
TEST_CASE("cuda: relative values") {
  check_parity_of<float, true>([](auto& learned) {
    return attention(kernel::dot_product{}, value_term::relative{learned(4, 33, 70)}, visible());
  });
}
TEST_CASE("cuda: T5") {
  check_parity_of<float, true>([](auto& learned) { return t5_attention({learned(4, 32, 1)}, visible()); });
}

}  // namespace attune::cuda_test
