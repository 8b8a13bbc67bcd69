// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Derivatives of affine-scaled attention, its learned parameters and moving averages, and of kernels of position.
#include <doctest/doctest.h>

#include <attune/policies.hpp>

#include "gradients/checks.hpp"

using namespace attune;
using namespace attune::test;

namespace {

enum class average { number, of_view_stopped, of_view_passed, of_projection_passed, of_projection_stopped };

/// alpha a projection where the problem has sources for it, else a view; the average by `how`.
subject affine_subject(std::string const& name, problem const& p, average how, activation f) {
  return subject_of(name, p, [how, f](problem const& at) {
    parameter const alpha = at.numbers.count("normalizer.alpha.x") > 0 ? parameter(at.projected("normalizer.alpha", f))
                                                                       : at.number("normalizer.alpha");
    parameter mean;
    if (how == average::number)
      mean = at.number("normalizer.average");
    else {
      bool const passed = how == average::of_view_passed || how == average::of_projection_passed;
      bool const view = how == average::of_view_passed || how == average::of_view_stopped;
      parameter const of = view ? at.number("normalizer.average.x") : parameter(at.projected("normalizer.average", f));
      mean = parameter::moving_average(of, at.number("previous"), 0.75,
                                       passed ? average_gradient::passed : average_gradient::stopped);
    }
    return attention(kernel::scalar_sort{at.number("kernel.0.tau")} + kernel::spatial_prior{at.number("kernel.1.beta")},
                     length_scale::yarn{at.number("length_scale.extension")},
                     normalizer::affine<normalizer::affine_count::visible>{.alpha = alpha, .average = mean}, at.mask());
  });
}
problem_maker affine_problem(std::uint64_t seed) {
  return problem_maker(seed, 2)
      .by_query("sort_q", 1)
      .by_key("sort_k", 1)
      .by_query("center", 2)
      .by_query("spread", 2, 0.5, 2)
      .by_key("place", 2)
      .by_key("v", 2)
      .number("kernel.0.tau", 0.5, 2)
      .number("kernel.1.beta", 0.5, 2)
      .number("length_scale.extension", 1.5, 4);
}

}  // namespace

TEST_SUITE("affine") {
  TEST_CASE("alpha and average as views") {
    check_derivatives(
        affine_subject("views", affine_problem(1).per_query("normalizer.alpha").number("normalizer.average").make(),
                       average::number, activation::identity));
  }
  TEST_CASE("alpha from activations; an average of a view") {
    for (activation const f : {activation::sigmoid, activation::linear_clipping})
      check_derivatives(affine_subject("average of a view",
                                       affine_problem(2)
                                           .projected("normalizer.alpha", 3)
                                           .add(kind::value, "normalizer.average", {1, 2, 1, 1})
                                           .add(kind::x, "normalizer.average.x", {2, 2, 3, 1})
                                           .add(kind::stopped, "previous", {1, 2, 1, 1})
                                           .make(),
                                       average::of_view_passed, f));
  }
  TEST_CASE("an average of a projection") {
    for (activation const f : {activation::sigmoid, activation::linear_clipping, activation::softplus})
      check_derivatives(affine_subject("average of a projection",
                                       affine_problem(3)
                                           .per_query("normalizer.alpha")
                                           .projected("normalizer.average", 3)
                                           .add(kind::value, "normalizer.average", {1, 2, 1, 1})
                                           .add(kind::stopped, "previous", {1, 1, 1, 1})
                                           .make(),
                                       average::of_projection_passed, f));
    // A pre-activation without a weight and without a bias.
    check_derivatives(affine_subject("average of a pre-activation",
                                     affine_problem(3)
                                         .per_query("normalizer.alpha")
                                         .add(kind::x, "normalizer.average.x", {2, 2, 3, 1})
                                         .add(kind::value, "normalizer.average", {1, 2, 1, 1})
                                         .add(kind::stopped, "previous", {1, 1, 1, 1})
                                         .make(),
                                     average::of_projection_passed, activation::sigmoid));
  }
  TEST_CASE("a stopped average passes no gradient to what it averages, and does not touch any other gradient") {
    auto const make = [](average how) {
      problem_maker m = affine_problem(4);
      bool const view = how == average::of_view_stopped;
      m.per_query("normalizer.alpha").add(kind::value, "normalizer.average", {1, 2, 1, 1});
      kind const source = how == average::of_projection_passed ? kind::x : kind::stopped;
      m.add(source, "normalizer.average.x", {2, 2, 3, view ? 1 : 2});
      if (!view)
        m.add(how == average::of_projection_passed ? kind::weight : kind::stopped, "normalizer.average.weight",
              {1, 2, 1, 2});
      return affine_subject("stopped", m.add(kind::stopped, "previous", {1, 1, 1, 1}).make(), how, activation::sigmoid);
    };
    check_derivatives(make(average::of_view_stopped));
    subject const stopped = make(average::of_projection_stopped), passed = make(average::of_projection_passed);
    check_derivatives(stopped);
    auto const g = stopped.gradient(stopped.data), with = passed.gradient(passed.data);
    CHECK(g.size() + 2 == with.size());
    for (auto const& [name, values] : g)
      for (std::size_t n = 0; n < values.size(); ++n) CHECK(values[n] == with.at(name)[n]);
  }
  TEST_CASE("shares of all keys; TUPE") {
    problem const p = problem_maker(5)
                          .by_query("q", 3)
                          .by_key("k", 3)
                          .by_query("position_q", 2)
                          .by_key("position_k", 2)
                          .by_key("v", 2)
                          .per_query("normalizer.alpha")
                          .shared("normalizer.average")
                          .make();
    check_derivatives(subject_of("affine of all keys", p, [](problem const& at) {
      return attention(kernel::tupe(),
                       normalizer::affine<normalizer::affine_count::total>{.alpha = at.number("normalizer.alpha"),
                                                                           .average = at.number("normalizer.average")},
                       at.mask());
    }));
  }
  TEST_CASE("free share; Transformer-XL") {
    problem const p = problem_maker(6)
                          .by_query("q", 3)
                          .by_key("k", 3)
                          .by_key("v", 2)
                          .number("scale")
                          .table("kernel.0.bias", 1, 3)
                          .table("kernel.1.bias", 1, 3)
                          .table("kernel.1.relative", 11, 3)
                          .per_query("normalizer.alpha")
                          .number("normalizer.beta")
                          .make();
    check_derivatives(subject_of("free affine", p, [](problem const& at) {
      return attention(kernel::transformer_xl(at.tensor_of("kernel.0.bias"), at.tensor_of("kernel.1.bias"),
                                              at.tensor_of("kernel.1.relative"), at.number("scale")),
                       normalizer::free_affine<normalizer::affine_count::visible>{
                           .alpha = at.number("normalizer.alpha"), .beta = at.number("normalizer.beta")},
                       at.mask());
    }));
  }
  TEST_CASE("free share of all keys; Laplacian and relative bias") {
    problem const p = problem_maker(7)
                          .by_query("sort_q", 1)
                          .by_key("sort_k", 1)
                          .by_key("v", 2)
                          .number("kernel.0.tau", 0.5, 2)
                          .table("kernel.1.values", 5, 1)
                          .shared("normalizer.alpha")
                          .per_query("normalizer.beta")
                          .make();
    check_derivatives(subject_of("free affine of all keys", p, [](problem const& at) {
      return attention(
          kernel::scalar_laplacian{at.number("kernel.0.tau")} + kernel::relative_bias{at.tensor_of("kernel.1.values")},
          normalizer::free_affine<normalizer::affine_count::total>{.alpha = at.number("normalizer.alpha"),
                                                                   .beta = at.number("normalizer.beta")},
          at.mask());
    }));
  }
}
