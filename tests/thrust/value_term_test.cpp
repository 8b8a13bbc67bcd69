// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Value terms on Thrust: values and gradients are those of the reference, in every family.
#include <thrust/execution_policy.h>
#if defined(_OPENMP)
#include <thrust/system/omp/execution_policy.h>
#endif

#include <cmath>
#include <string>
#include <vector>

#include <attune/reference.hpp>
#include <attune/thrust.hpp>

#include "../support/one_call.hpp"
#include "../support/value_terms.hpp"
#include "../support/weight_gates.hpp"
#include "../unit/check.hpp"

namespace attune::test {
namespace {

constexpr index_t heads = 2, queries = 5, keys = 40, width = 4, value_width = 37;

bool same(std::vector<double> const& x, std::vector<double> const& y) {
  bool equal = x.size() == y.size();
  for (std::size_t n = 0; equal && n < x.size(); ++n) equal = std::fabs(x[n] - y[n]) <= 1e-11 * (1 + std::fabs(y[n]));
  return equal;
}

/// out and every gradient, against the reference.
template <class Exec, class Op>
void check_against_reference(Exec const& exec, Op const& op) {
  one_call const d{heads, queries, keys, width, value_width};
  shape const rows{1, heads, queries, value_width};
  std::vector<double> out(d.by_out.size()), expected;
  forward(exec, op, d.of<tensor<double const>>(op), {.out = tensor<double>(out, rows)});
  auto const dense = forward(reference<double>{}, op, d.of<any_tensor>(op));
  for (auto const& head : dense.heads)
    for (index_t i = 0; i < queries; ++i)
      for (index_t c = 0; c < value_width; ++c) expected.push_back(head.out(i, c));
  CHECK(same(out, expected));
  auto const got = vjp(exec, op, d.of<tensor<double const>>(op), {.out = tensor<double const>(d.by_out, rows)});
  auto const right = vjp(reference<double>{}, op, d.of<any_tensor>(op), {.out = d.cotangent()});
  for (std::size_t f = 0; f < right.fields.size(); ++f)
    CHECK_MESSAGE(same(got.fields[f].values, right.fields[f].values), std::string(name_of(field(f))));
  REQUIRE(got.parameters.size() == right.parameters.size());
  for (std::size_t n = 0; n < right.parameters.size(); ++n)
    CHECK_MESSAGE(same(got.parameters[n].values.values, right.parameters[n].values.values), right.parameters[n].path);
  REQUIRE(got.tables.size() == right.tables.size());
  for (std::size_t n = 0; n < right.tables.size(); ++n)
    CHECK_MESSAGE(same(got.tables[n].values.values, right.tables[n].values.values), right.tables[n].path);
}

/// 37 features, more than one task sums.
vectors_of_term const shared({1, 1, 7, value_width}), of_heads({1, heads, 5, value_width}, 2);

TEST_CASE("thrust: a value term, on one thread and on many") {
  auto const op = attention(kernel::dot_product{}, value_term::relative{shared}, mask::causal{});
  check_against_reference(thrust_on<double>(thrust::host), op);
#if defined(_OPENMP)
  check_against_reference(thrust_on<double>(thrust::omp::par), op);
#endif
}
TEST_CASE("thrust: a value term, a decay of the weights and a uniform share") {
  check_against_reference(thrust_on<double>(thrust::host),
                          attention(kernel::dot_product{}, periodic_term{of_heads}, weight_decay{0.2},
                                    normalizer::affine<>{.alpha = 0.7, .average = 0.4}, mask::causal{}));
}
TEST_CASE("thrust: a value term over a candidate set") {
  check_against_reference(thrust_on<double>(thrust::host),
                          attention(kernel::dot_product{}, periodic_term{shared}, normalizer::sparsemax{}));
}
TEST_CASE("thrust: a value term over range-weighted rows") {
  check_against_reference(thrust_on<double>(thrust::host),
                          attention(kernel::dot_product{}, value_term::relative{of_heads},
                                    normalizer::self_adjusted<normalizer::adjusted_form::with_zero>{}));
}

}  // namespace
}  // namespace attune::test
