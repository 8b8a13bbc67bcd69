// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Derivatives of Principled Attention with a capped kernel and every factor: its ground level wherever it may lie.
#include <doctest/doctest.h>

#include <attune/policies.hpp>

#include "gradients/checks.hpp"

using namespace attune;
using namespace attune::test;

namespace {

/// gamma and alpha as views, or as projections where the problem has sources for them.
subject principled(std::string const& name, problem const& p, activation f = activation::identity) {
  return subject_of(name, p, [f](problem const& at) {
    bool const learned = at.numbers.count("length_scale.alpha.x") > 0;
    parameter const alpha =
        learned ? parameter(at.projected("length_scale.alpha", f)) : at.number("length_scale.alpha");
    parameter const gamma = at.number("gamma");
    return attention((kernel::dot_product{at.number("kernel.0.scale")} + kernel::alibi{at.number("kernel.1.slope")}) |
                         kernel::softcap{at.number("kernel.map.cap")},
                     length_scale::margin{.alpha = alpha, .gamma = gamma}, gate::softplus{at.number("gate.beta")},
                     normalizer::grounded{gamma}, gate::sigmoid_value{}, gate::sigmoid_output{}, at.mask());
  });
}
problem_maker principled_problem(std::uint64_t seed, index_t batch, double gamma_low, double gamma_high) {
  return problem_maker(seed, batch)
      .by_query("q", 3)
      .by_key("k", 3)
      .by_key("v", 2)
      .by_query("gate_q", 2)
      .by_key("gate_k", 2)
      .number("kernel.0.scale")
      .shared("kernel.1.slope", 0.1, 0.5)
      .number("kernel.map.cap", 1, 3)
      .per_query("gamma", gamma_low, gamma_high)
      .number("gate.beta")
      .by_key("value_gate", 2)
      .by_query("output_gate", 2)
      .add(kind::input, "v0", {1, 2, 1, 2});
}

}  // namespace

TEST_SUITE("grounded") {
  TEST_CASE("levels among, below and above all logits, far away; per query, batch 2") {
    check_derivatives(principled("among", principled_problem(1, 2, -1.5, 0.5).per_query("length_scale.alpha").make()));
    check_derivatives(principled("below", principled_problem(2, 1, -9, -8).per_query("length_scale.alpha").make()));
    check_derivatives(
        principled("above", principled_problem(3, 1, 3, 4).causal().number("length_scale.alpha", -3, -1).make()));
    check_derivatives(
        principled("far above", principled_problem(4, 1, 33, 35).number("length_scale.alpha", -4, -3).make()));
    check_derivatives(principled("far below", principled_problem(5, 1, -36, -34).number("length_scale.alpha").make()));
  }
  TEST_CASE("parameters from activations, by every activation") {
    for (activation const f :
         {activation::identity, activation::sigmoid, activation::softplus, activation::linear_clipping})
      check_derivatives(
          principled("projected", principled_problem(6, 1, -1.5, 0.5).projected("length_scale.alpha", 3).make(), f));
  }
}
