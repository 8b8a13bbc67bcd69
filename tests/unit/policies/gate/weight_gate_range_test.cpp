// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A weight gate that reads a contraction, with two sums of values.
#include "../../../support/checked_operator.hpp"
#include "../../../support/weight_gates.hpp"

namespace attune::test {
namespace {

TEST_CASE("range-weighted rows, a score gate and a weight gate") {
  check_operator(attention(kernel::dot_product{}, gate::softplus{0.3}, weight_sigmoid{0.8},
                           normalizer::self_adjusted<normalizer::adjusted_form::with_zero>{}, mask::causal{}),
                 1);
}

}  // namespace
}  // namespace attune::test
