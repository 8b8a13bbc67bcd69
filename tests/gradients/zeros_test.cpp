// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Where something is exactly 0 and still moves: second derivatives; and misuse of directions and of projected
// parameters.
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include <attune/attune.hpp>
#include <attune/reference.hpp>

#include "unit/check.hpp"

using namespace attune;
using namespace attune::test;

namespace {

constexpr index_t keys = 4;
std::vector<double> const sort_q{0.5}, sort_k{0.5, -1, 0.25, 2}, values{1, -2, 0.5, 3}, ones{1}, by_out{0.75};

tensor<double const> one_head(std::vector<double> const& x, index_t length) {
  return {x.data(), shape{1, 1, length, 1}};
}

}  // namespace

TEST_SUITE("zeros") {
  TEST_CASE("a product of two things that are 0 and move has a second derivative") {
    using D = dual<dual<double, 1>, 1>;
    D x(dual<double, 1>::variable(0.0, 0));
    x.tangent[0] = dual<double, 1>(1.0);
    CHECK((x * x).tangent[0].tangent[0] == 2);
    CHECK((x * D(math::infinity<double>())).tangent[0].value == math::infinity<double>());
    CHECK((D(0.0) * D(math::infinity<double>())).tangent[0].value == 0);  // what does not move stays 0
  }

  TEST_CASE("scalar_sort: the Hessian by a query that meets its key") {
    auto const op = attention(kernel::scalar_sort{1.5});
    auto const gradient = [&](double q) {
      std::vector<double> const moved{q};
      return vjp(reference<digits50>{}, op,
                 {.v = one_head(values, keys), .sort_q = one_head(moved, 1), .sort_k = one_head(sort_k, keys)},
                 {.out = one_head(by_out, 1)});
    };
    inputs<std::remove_const_t<decltype(op)>, tangent_tensor> const in{
        .v = one_head(values, keys),
        .sort_q = {one_head(sort_q, 1), one_head(ones, 1)},
        .sort_k = one_head(sort_k, keys)};
    auto const h = jvp_of_vjp(reference<double>{}, op, in, {.out = one_head(by_out, 1)});
    double const step = 0x1p-40;
    auto const plus = gradient(0.5 + step), minus = gradient(0.5 - step);
    for (index_t j = 0; j < keys; ++j) {
      double const expected =
          double((plus.of(field::sort_k)(0, 0, j, 0) - minus.of(field::sort_k)(0, 0, j, 0)) / (2 * step));
      CHECK(std::fabs(h.of(field::sort_k)(0, 0, j, 0).tangent[0] - expected) < 1e-10);
    }
    double const expected =
        double((plus.of(field::sort_q)(0, 0, 0, 0) - minus.of(field::sort_q)(0, 0, 0, 0)) / (2 * step));
    CHECK(std::fabs(h.of(field::sort_q)(0, 0, 0, 0).tangent[0] - expected) < 1e-10);
  }

  TEST_CASE("self-adjusted product: a key far below the others spoils nothing") {
    auto const op = attention(kernel::given_scores{}, normalizer::self_adjusted<normalizer::adjusted_form::product>{});
    std::vector<float> const scores{1, 2, -1e9f}, v{1, 1, 1};
    std::vector<float> out(1);
    forward(cpu<float>{1}, op,
            {.v = tensor<float const>(v, shape{1, 1, 3, 1}), .scores = tensor<float const>(scores, shape{1, 1, 1, 3})},
            {.out = tensor<float>(out, shape{1, 1, 1, 1})});
    double const e = std::exp(1.0);
    CHECK(double(out[0]) == doctest::Approx((1 + 2 * e) / (1 + e)).epsilon(1e-6));
  }

  TEST_CASE("a projected parameter of two policies has one gradient") {
    std::vector<double> const x{0.3}, bias{-0.2};
    parameter const gamma = projection{.x = one_head(x, 1), .bias = one_head(bias, 1)};
    auto const op = principled_attention({.alpha = 0.5, .beta = 0.1, .gamma = gamma});
    auto const g = vjp(reference<double>{}, op,
                       {.q = one_head(sort_q, 1),
                        .k = one_head(sort_k, keys),
                        .v = one_head(values, keys),
                        .gate_q = one_head(sort_q, 1),
                        .gate_k = one_head(sort_k, keys),
                        .v0 = one_head(ones, 1)},
                       {.out = one_head(by_out, 1)});
    CHECK(g.projected("gamma").bias(0, 0, 0, 0) == g.parameter("gamma")(0, 0, 0, 0));
    CHECK(g.projected("normalizer.gamma").bias(0, 0, 0, 0) != g.parameter("gamma")(0, 0, 0, 0));
  }

  TEST_CASE("directions have the shape of what moves, parameters the range of the executor") {
    auto const op = attention(kernel::scalar_sort{1.5});
    inputs<std::remove_const_t<decltype(op)>, tangent_tensor> const in{
        .v = one_head(values, keys), .sort_q = one_head(sort_q, 1), .sort_k = one_head(sort_k, keys)};
    std::vector<double> const two{1, 2};
    CHECK(
        error_of([&] { jvp(reference<double>{}, op, in, {.parameters = {{"tau", parameter(one_head(two, 2))}}}); }) ==
        "attune::jvp: the direction of parameter kernel.tau has shape (1, 1, 2, 1); expected (1, 1, 1, 1), that of the "
        "parameter, or one number");
    auto const tiny = attention(kernel::scalar_sort{1e-50});
    std::vector<float> const x{0, 1};
    std::vector<float> out(2);
    tensor<float const> const X(x, shape{1, 1, 2, 1});
    std::string const text = error_of([&] {
      forward(cpu<float>{1}, tiny, {.v = X, .sort_q = X, .sort_k = X}, {.out = tensor<float>(out, shape{1, 1, 2, 1})});
    });
    CHECK(text.find("a finite number > 0, in the precision of the executor") != std::string::npos);
  }
}
