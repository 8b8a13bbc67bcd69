// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Derivatives of the normalizers with a candidate set: sparsemax, entmax, top-k.
#include <doctest/doctest.h>

#include <attune/policies.hpp>

#include "gradients/checks.hpp"

using namespace attune;
using namespace attune::test;

namespace {

problem_maker scaled_scores(std::uint64_t seed) {
  return problem_maker(seed)
      .by_key("v", 2)
      .pairs("scores")
      .number("length_scale.scale", 0.25, 1)
      .per_query("length_scale.bias", 0.25, 1);
}
length_scale::ssmax ssmax(problem const& at) {
  return {.scale = at.number("length_scale.scale"), .bias = at.number("length_scale.bias")};
}

}  // namespace

TEST_SUITE("candidate sets") {
  TEST_CASE("sparsemax") {
    check_derivatives(subject_of("sparsemax", scaled_scores(1).make(), [](problem const& at) {
      return attention(kernel::given_scores{}, ssmax(at), normalizer::sparsemax{}, at.mask());
    }));
  }
  TEST_CASE("sparsemax behind a margin: gamma has no effect") {
    for (double const gamma : {0.0, 40.0}) {
      problem const p = problem_maker(2)
                            .by_key("v", 2)
                            .pairs("scores")
                            .number("length_scale.alpha", -4, -3)
                            .per_query("length_scale.gamma", gamma, gamma + 1)
                            .make();
      subject s = subject_of("entmax 1.5", p, [](problem const& at) {
        return attention(
            kernel::given_scores{},
            length_scale::margin{.alpha = at.number("length_scale.alpha"), .gamma = at.number("length_scale.gamma")},
            normalizer::entmax15{}, gate::sigmoid_output{}, at.mask());
      });
      s.data.numbers["output_gate"] = problem_maker(3).by_query("output_gate", 2).make().at("output_gate");
      s.still = {"length_scale.gamma"};
      check_derivatives(s);
    }
  }
  TEST_CASE("entmax, alpha from 1 to 4, value gate") {
    for (double const alpha : {1.0, 1.0 + 0x1p-10, 1.25, 1.5, 2.0, 2.5}) {
      problem const p = scaled_scores(4).by_key("value_gate", 2).per_query("normalizer.alpha", alpha, alpha).make();
      subject const s = subject_of("entmax", p, [](problem const& at) {
        return attention(kernel::given_scores{}, ssmax(at), normalizer::entmax{at.number("normalizer.alpha")},
                         gate::sigmoid_value{}, at.mask());
      });
      CAPTURE(alpha);
      if (alpha > 1) check_against_differences(s);  // alpha < 1 is out of the domain
      check_against_duals(s);
      if (alpha > 1) check_second_order(s);
    }
  }
  TEST_CASE("top-k") {
    for (double const scale : {1.0, 2.0}) {
      problem const p = scaled_scores(5).number("length_scale.scale", scale, scale + 1).make();
      check_derivatives(subject_of("top-k", p, [](problem const& at) {
        return attention(kernel::given_scores{}, ssmax(at), normalizer::top_k{2}, at.mask());
      }));
    }
  }
}
