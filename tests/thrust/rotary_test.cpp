// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Rotary embeddings on Thrust: value and gradients against the reference.
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <thrust/execution_policy.h>

#include <attune/reference.hpp>
#include <attune/testing/drawn_problem.hpp>
#include <attune/thrust.hpp>

#include "../hooks/rotary/configurations.hpp"

namespace attune::test {
namespace {

double worst(std::vector<double> const& x, std::vector<double> const& y) {
  double size = 1e-3, error = x.size() == y.size() ? 0 : 1;
  for (double n : y) size = std::fmax(size, std::fabs(n));
  for (std::size_t n = 0; n < y.size() && error < 1; ++n) error = std::fmax(error, std::fabs(x[n] - y[n]) / size);
  return error;
}

TEST_CASE("thrust: rotary embeddings, value and gradients") {
  constexpr index_t queries = 5, keys = 9, width = 43;
  rotary_configurations const all(queries, keys, width);
  for (kernel::rotary const& k : all.kernels()) {
    auto const op = attention(k + kernel::dot_product{.scale = 0.2}, mask::causal{});
    using op_type = std::remove_const_t<decltype(op)>;
    testing::detail::normal_numbers random(1);
    testing::drawn_problem<op_type> const p({.batch = 2,
                                             .heads = 4,
                                             .queries = queries,
                                             .keys = keys,
                                             .width = width,
                                             .value_width = 3,
                                             .key_heads = 2,
                                             .value_heads = 2},
                                            random);
    using view = tensor<double const>;
    auto const exec = thrust_on<double>(thrust::host);
    std::vector<double> out(2 * 4 * queries * 3), expected;
    forward(exec, op, p.inputs<view>(), {.out = tensor<double>(out, {2, 4, queries, 3})});
    for (auto const& head : forward(reference<double>{}, op, p.inputs<any_tensor>()).heads)
      for (index_t i = 0; i < queries; ++i)
        for (index_t c = 0; c < 3; ++c) expected.push_back(head.out(i, c));
    CHECK(worst(out, expected) < 1e-13);

    auto const got = vjp(exec, op, p.inputs<view>(), p.cotangents<view>());
    auto const right = vjp(reference<double>{}, op, p.inputs<any_tensor>(), p.cotangents<any_tensor>());
    for (std::size_t f = 0; f < right.fields.size(); ++f)
      CHECK_MESSAGE(worst(got.fields[f].values, right.fields[f].values) < 1e-12, std::string(name_of(field(f))));
    for (std::size_t n = 0; n < right.parameters.size(); ++n)
      CHECK_MESSAGE(worst(got.parameters[n].values.values, right.parameters[n].values.values) < 1e-12,
                    right.parameters[n].path);
  }
}

}  // namespace
}  // namespace attune::test
