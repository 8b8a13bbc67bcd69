// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Derivatives of off-by-one and sinks, with and without a value, with the other score gates and the kernels that
// compare q and k.
#include <doctest/doctest.h>

#include <attune/policies.hpp>

#include "gradients/checks.hpp"

using namespace attune;
using namespace attune::test;

namespace {

/// What a user might sum over features.
struct smooth_pair {
  template <class T>
  static T pair(T const& q, T const& k) {
    return math::tanh(T(q * k)) - math::softplus(T(q - k));
  }
};

problem_maker queries_and_keys(std::uint64_t seed, index_t batch = 1) {
  return problem_maker(seed, batch).by_query("q", 3).by_key("k", 3).by_key("v", 2);
}
problem_maker gated(std::uint64_t seed, index_t batch = 1) {
  return queries_and_keys(seed, batch).by_query("gate_q", 2).by_key("gate_k", 2);
}

}  // namespace

TEST_SUITE("off by one and sink") {
  TEST_CASE("off by one; tempered and bilinear products; ssmax; two-sided gate") {
    problem const p = gated(11)
                          .number("kernel.0.tau", 0.5, 2)
                          .shared("kernel.1.scale")
                          .table("kernel.1.metric", 1, 3)
                          .number("length_scale.scale", 0.25, 1)
                          .per_query("length_scale.bias")
                          .number("gate.beta")
                          .make();
    check_derivatives(subject_of("off by one", p, [](problem const& at) {
      return attention(
          kernel::tempered_dot{at.number("kernel.0.tau")} +
              kernel::bilinear{at.tensor_of("kernel.1.metric"), at.number("kernel.1.scale")},
          length_scale::ssmax{.scale = at.number("length_scale.scale"), .bias = at.number("length_scale.bias")},
          gate::two_sided{at.number("gate.beta")}, normalizer::off_by_one{}, at.mask());
    }));
  }
  TEST_CASE("off by one with a value; distances; margin near and far") {
    for (double const level : {0.0, 34.0}) {
      problem const p = queries_and_keys(12)
                            .number("kernel.0.tau", 0.5, 2)
                            .number("kernel.1.scale")
                            .number("length_scale.alpha", -4, -3)
                            .number("length_scale.gamma", level, level + 1)
                            .add(kind::input, "v0", {1, 1, 3, 2})
                            .make();
      check_derivatives(subject_of("valued off by one", p, [](problem const& at) {
        return attention(
            kernel::rbf{at.number("kernel.0.tau")} + kernel::l2{at.number("kernel.1.scale")},
            length_scale::margin{.alpha = at.number("length_scale.alpha"), .gamma = at.number("length_scale.gamma")},
            normalizer::valued_off_by_one{}, at.mask());
      }));
    }
  }
  TEST_CASE("sink below and above the logits; metric and inverse distances; log n; given gate; headwise output gate") {
    for (double const level : {-6.0, -1.0, 4.0}) {
      problem const p = queries_and_keys(13)
                            .number("kernel.0.scale", 0.25, 1)
                            .table("kernel.0.metric", 1, 3, 0.25, 1.5)
                            .number("kernel.1.eps", 0.5, 2)
                            .shared("length_scale.training_length", 3, 9)
                            .pairs("gates")
                            .number("gate.beta")
                            .by_query("output_gate", 1)
                            .number("normalizer.logit", level, level + 0.5)
                            .make();
      check_derivatives(subject_of("sink", p, [](problem const& at) {
        return attention(kernel::elliptical{at.tensor_of("kernel.0.metric"), at.number("kernel.0.scale")} +
                             kernel::inverse_distance{at.number("kernel.1.eps")},
                         length_scale::log_n{at.number("length_scale.training_length")},
                         gate::given_softplus{at.number("gate.beta")}, normalizer::sink{at.number("normalizer.logit")},
                         gate::sigmoid_output{}, at.mask());
      }));
    }
  }
  TEST_CASE("sink with a value; sums over features; margin; given two-sided gate") {
    for (double const gamma : {0.0, -40.0}) {
      problem const p = queries_and_keys(14)
                            .number("kernel.0.gamma", 0.25, 1)
                            .number("kernel.1.scale")
                            .number("length_scale.alpha", -4, -3)
                            .shared("length_scale.gamma", gamma, gamma + 1)
                            .pairs("gates")
                            .number("gate.beta")
                            .per_query("normalizer.logit")
                            .add(kind::input, "v0", {1, 2, 3, 2})
                            .make();
      check_derivatives(subject_of("valued sink", p, [](problem const& at) {
        return attention(
            kernel::scaled_rbf{at.number("kernel.0.gamma")} +
                kernel::elementwise<smooth_pair>{at.number("kernel.1.scale")},
            length_scale::margin{.alpha = at.number("length_scale.alpha"), .gamma = at.number("length_scale.gamma")},
            gate::given_two_sided{at.number("gate.beta")}, normalizer::valued_sink{at.number("normalizer.logit")},
            at.mask());
      }));
    }
  }
}
