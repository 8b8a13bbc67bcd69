// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Derivatives of softmax, sigmoid and weights made of any function of the logit, with the kernels that are given or
// gathered.
#include <doctest/doctest.h>

#include <attune/policies.hpp>

#include "gradients/checks.hpp"

using namespace attune;
using namespace attune::test;

namespace {

problem_maker with_margin(std::uint64_t seed, double gamma) {
  return problem_maker(seed)
      .by_key("v", 2)
      .number("length_scale.alpha", -4, -3)
      .per_query("length_scale.gamma", gamma, gamma + 1);
}
length_scale::margin margin(problem const& at) {
  return {.alpha = at.number("length_scale.alpha"), .gamma = at.number("length_scale.gamma")};
}

}  // namespace

TEST_SUITE("softmax") {
  TEST_CASE("dot product with T5 buckets and a bias per key; gamma matters to the lse alone") {
    for (double const gamma : {0.0, 36.0}) {
      problem const p = with_margin(1, gamma)
                            .by_query("q", 3)
                            .by_key("k", 3)
                            .by_key("key_bias", 1)
                            .number("kernel.0.0.scale")
                            .table("kernel.0.1.values", 4, 1)
                            .make();
      check_derivatives(subject_of("softmax", p, [](problem const& at) {
        kernel::t5_bias buckets;
        buckets.values = at.tensor_of("kernel.0.1.values");
        buckets.max_distance = 6;
        return attention(kernel::dot_product{at.number("kernel.0.0.scale")} + buckets + kernel::key_bias{}, margin(at),
                         at.mask());
      }));
    }
  }
}

TEST_SUITE("weights that do not compete") {
  TEST_CASE("sigmoid, its bias set and by default; given bias and Fourier prior") {
    for (bool const biased : {true, false})
      for (double const gamma : {0.0, 36.0}) {
        problem_maker m = with_margin(2, gamma);
        m.pairs("bias").table("kernel.1.cosine", 3, 1).table("kernel.1.sine", 3, 1).table("kernel.1.frequency", 3, 1);
        if (biased) m.number("normalizer.bias");
        check_derivatives(subject_of("sigmoid", m.make(), [](problem const& at) {
          kernel::fourier_prior prior;
          prior.cosine = at.tensor_of("kernel.1.cosine");
          prior.sine = at.tensor_of("kernel.1.sine");
          prior.frequency = at.tensor_of("kernel.1.frequency");
          normalizer::sigmoid n;
          if (at.numbers.count("normalizer.bias")) n.bias = at.number("normalizer.bias");
          return attention(kernel::bias{} + prior, margin(at), n, at.mask());
        }));
      }
  }
  TEST_CASE("exponentials, with a prior") {
    for (double const gamma : {0.0, 34.0}) {
      problem const p = with_margin(3, gamma).by_query("q", 3).by_key("k", 3).pairs("bias", 0.25, 2).make();
      check_derivatives(subject_of("exponential", p, [](problem const& at) {
        return attention(kernel::dot_product{} + kernel::log_prior{}, margin(at), normalizer::exponential{}, at.mask());
      }));
    }
  }
}

TEST_SUITE("any function of the logit") {
  // Scores lie around the level at which the margin moves ReLUs: 2.5 above and below 0.
  TEST_CASE("its sum") {
    problem const p = with_margin(4, 34).pairs("scores").make();
    check_derivatives(subject_of("exponentials over their sum", p, [](problem const& at) {
      return attention(kernel::given_scores{}, margin(at), normalizer::generic<normalizer::map::exponential>{},
                       at.mask());
    }));
  }
}
