// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A weight gate over a candidate set.
#include "../../../support/checked_operator.hpp"
#include "../../../support/weight_gates.hpp"

namespace attune::test {
namespace {

TEST_CASE("a candidate set, a weight gate that reads a contraction, and an output gate") {
  check_operator(attention(kernel::dot_product{}, weight_sigmoid{0.8}, normalizer::sparsemax{}, gate::sigmoid_output{}),
                 2);
}

}  // namespace
}  // namespace attune::test
