// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Every call of an operator against 50 digits, and its gradients against differences.
#pragma once

#include <sstream>

#include <attune/attune.hpp>
#include <attune/testing/forward_check.hpp>
#include <attune/testing/gradient_check.hpp>

#include "../unit/check.hpp"

namespace attune::test {

template <class Op>
void check_operator(Op const& op, std::uint64_t seed) {
  auto const forward = testing::check_forward(
      op, {.batch = 2, .queries = 5, .keys = 75, .width = 8, .value_width = 5, .gate_width = 4}, seed);
  std::ostringstream text;
  text << forward;
  testing::problem_extents const small{.batch = 1, .queries = 3, .keys = 5, .width = 3, .gate_width = 2};
  auto const gradients = testing::check_gradients(op, small, seed);
  text << gradients;
  INFO(text.str());
  CHECK(forward.passed());
  CHECK(gradients.passed());
}

}  // namespace attune::test
