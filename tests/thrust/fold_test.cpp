// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Folds on Thrust: `out` and every gradient are those of the reference executor.
#include <cmath>
#include <string>
#include <vector>

#include <thrust/execution_policy.h>

#include <attune/reference.hpp>
#include <attune/thrust.hpp>

#include "../hooks/fold/calls.hpp"
#include "../unit/check.hpp"

namespace attune::test {
namespace {

void check_same(std::vector<double> const& x, std::vector<double> const& y, std::string const& what) {
  REQUIRE_MESSAGE(x.size() == y.size(), what);
  for (std::size_t n = 0; n < x.size(); ++n) CHECK_MESSAGE(x[n] == doctest::Approx(y[n]).epsilon(1e-12).scale(1), what);
}

template <class Op>
void check_against_reference(Op const& op, fold_call const& d) {
  auto const exec = thrust_on<double>(thrust::host);
  std::vector<double> out(std::size_t(d.out_shape().size()), nan), expected(out);
  forward(exec, op, d.of<tensor<double const>>(op), {.out = tensor<double>(out, d.out_shape())});
  forward(reference<double>{}, op, d.of<any_tensor>(op), {.out = tensor<double>(expected, d.out_shape())});
  check_same(out, expected, "out");
  auto const got = vjp(exec, op, d.of<tensor<double const>>(op), {.out = d.cotangent()});
  auto const right = vjp(reference<double>{}, op, d.of<any_tensor>(op), {.out = d.cotangent()});
  for (std::size_t f = 0; f < right.fields.size(); ++f)
    check_same(got.fields[f].values, right.fields[f].values, name_of(field(f)));
  REQUIRE(got.parameters.size() == right.parameters.size());
  for (std::size_t n = 0; n < right.parameters.size(); ++n) {
    CHECK(got.parameters[n].path == right.parameters[n].path);
    check_same(got.parameters[n].values.values, right.parameters[n].values.values, right.parameters[n].path);
    check_same(got.parameters[n].x.values, right.parameters[n].x.values, right.parameters[n].path);
  }
}

TEST_CASE("thrust: a fold of heads, values wider than one task, coefficients from activations") {
  fold_call const d{.value_width = 37};
  std::vector<double> const x = d.numbers(d.heads * d.queries, 8);
  parameter const lambda = projection{.x = tensor<double const>(x, shape{d.batch, d.heads, d.queries, 1}),
                                      .activation = activation::sigmoid};
  check_against_reference(fold(softmax_attention(mask::causal{}),
                               {parameter::moving_average(lambda, 0.4, 0.9, average_gradient::passed), lambda}),
                          d);
}

TEST_CASE("thrust: a fold of two operators, one with a candidate set") {
  fold_call const d{.terms = 1};
  std::vector<double> const by_head{-0.8, 0, 0.25};
  check_against_reference(
      fold({0.75, per_head(by_head)}, softmax_attention(mask::causal{}), sparsemax_attention(mask::causal{})), d);
}

}  // namespace
}  // namespace attune::test
