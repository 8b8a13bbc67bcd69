// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A weight gate with a uniform share: the share of a key has the factor too.
#include "../../../support/checked_operator.hpp"
#include "../../../support/weight_gates.hpp"

namespace attune::test {
namespace {

TEST_CASE("a decay of the weights with a learned rate, and a uniform share") {
  check_operator(attention(kernel::dot_product{}, weight_decay{0.2}, normalizer::affine{.alpha = 0.7, .average = 0.4},
                           mask::causal{}),
                 1);
}

}  // namespace
}  // namespace attune::test
