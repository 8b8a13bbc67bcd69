// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A weight gate next to a ground, a value gate and an output gate.
#include "../../../support/checked_operator.hpp"
#include "../../../support/weight_gates.hpp"

namespace attune::test {
namespace {

TEST_CASE("the ground has no factor; a kernel without a contraction leaves the first buffer to the gate") {
  check_operator(attention(kernel::alibi{0.5}, weight_sigmoid{0.8}, normalizer::grounded{-0.5}, gate::sigmoid_output{}),
                 1);
}

}  // namespace
}  // namespace attune::test
