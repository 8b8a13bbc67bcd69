// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Derivatives of the four sliced-ReLU attentions.
#include <doctest/doctest.h>

#include <attune/policies.hpp>

#include "gradients/checks.hpp"

using namespace attune;
using namespace attune::test;

namespace {

template <class Normalizer>
void check_relu(char const* name, std::uint64_t seed) {
  for (double const gamma : {-1.0, -40.0}) {  // a margin near, and one that leaves the logits as a row constant
    problem const p = problem_maker(seed)
                          .by_key("v", 2)
                          .by_query("sort_q", 1)
                          .by_key("sort_k", 1)
                          .number("length_scale.alpha", -4.5, -4)
                          .per_query("length_scale.gamma", gamma, gamma + 1)
                          .make();
    check_derivatives(subject_of(name, p, [](problem const& at) {
      return attention(
          kernel::scalar_difference{},
          length_scale::margin{.alpha = at.number("length_scale.alpha"), .gamma = at.number("length_scale.gamma")},
          Normalizer{}, at.mask());
    }));
  }
}

}  // namespace

TEST_SUITE("relu") {
  TEST_CASE("plain") { check_relu<normalizer::relu>("relu", 1); }
  TEST_CASE("over K") { check_relu<normalizer::mean_relu>("relu over K", 2); }
  TEST_CASE("over the sum") { check_relu<normalizer::normalized_relu>("relu over the sum", 3); }
  TEST_CASE("less its mean") { check_relu<normalizer::centered_relu>("relu less its mean", 4); }
}
