// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "../support/every_function.hpp"
#include "parity.hpp"

namespace attune::cuda_test {

TEST_CASE("cuda: the functions that only users' policies call") {
  check_parity<float, true>(attention(test::every_function{}, normalizer::softmax{}, visible()));
}

}  // namespace attune::cuda_test
