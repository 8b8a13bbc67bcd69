// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A weight gate behind softmax: dropout with a fixed seed.
#include "../../../support/checked_operator.hpp"
#include "../../../support/weight_gates.hpp"

namespace attune::test {
namespace {

TEST_CASE("dropout: every call against 50 digits, gradients against differences") {
  check_operator(attention(kernel::dot_product{}, gate::dropout{.rate = 0.3, .seed = 7}, mask::causal{}), 1);
}

}  // namespace
}  // namespace attune::test
