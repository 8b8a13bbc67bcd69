// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Derivatives of the three self-adjusted softmaxes, through their ends and past them.
#include <doctest/doctest.h>

#include <attune/policies.hpp>

#include "gradients/checks.hpp"

using namespace attune;
using namespace attune::test;

namespace {

using normalizer::adjusted_ends;
using normalizer::adjusted_form;

template <adjusted_form Form, adjusted_ends Ends = adjusted_ends::differentiated>
subject adjusted(double gamma, double shift) {
  problem const p = problem_maker(1)
                        .by_key("v", 2)
                        .pairs("scores", shift - 1.5, shift + 1.5)
                        .number("length_scale.alpha", -4, -3)
                        .per_query("length_scale.gamma", gamma, gamma + 1)
                        .make();
  return subject_of("self-adjusted", p, [](problem const& at) {
    return attention(
        kernel::given_scores{},
        length_scale::margin{.alpha = at.number("length_scale.alpha"), .gamma = at.number("length_scale.gamma")},
        normalizer::self_adjusted<Form, Ends>{}, at.mask());
  });
}

}  // namespace

TEST_SUITE("self-adjusted") {
  TEST_CASE("product") {
    check_derivatives(adjusted<adjusted_form::product>(0, 0));
    check_derivatives(adjusted<adjusted_form::product>(35, 1));
  }
  TEST_CASE("with zero: inside the range, below and above it") {
    check_derivatives(adjusted<adjusted_form::with_zero>(0, 0));
    check_derivatives(adjusted<adjusted_form::with_zero>(0, 4));
    check_derivatives(adjusted<adjusted_form::with_zero>(0, -4));
    check_derivatives(adjusted<adjusted_form::with_zero>(35, 1));
  }
  TEST_CASE("full range") {
    check_derivatives(adjusted<adjusted_form::full_range>(0, 0));
    check_derivatives(adjusted<adjusted_form::full_range>(35, 0));
  }
  // The ends of form product are no logits: there is nothing to detach.
  TEST_CASE("product, detached") {
    check_derivatives(adjusted<adjusted_form::product, adjusted_ends::detached>(0, 0));
    check_derivatives(adjusted<adjusted_form::product, adjusted_ends::detached>(35, 1));
  }
  TEST_CASE("detached ends stand still, also where the margin leaves gamma to the row constant") {
    // Gradients by gamma and alpha are continuous where |gamma| passes 32 and the logits change their units.
    subject near = adjusted<adjusted_form::with_zero, adjusted_ends::detached>(31, 0), far = near;
    for (double& gamma : near.data.numbers.at("length_scale.gamma").values) gamma = 32;
    for (double& gamma : far.data.numbers.at("length_scale.gamma").values) gamma = 32 + 0x1p-40;
    auto const g = near.gradient(near.data), after = far.gradient(far.data);
    for (auto const& [name, values] : g)
      for (std::size_t n = 0; n < values.size(); ++n)
        CHECK(double(math::abs(digits(values[n] - after.at(name)[n]))) < 1e-8);
    CHECK(largest(g) > 0.1);
  }
}
