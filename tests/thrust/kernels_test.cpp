// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Every contraction of the closed list at once, with every operand that a term can have: value and gradients against
// the reference.
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <thrust/execution_policy.h>

#include <attune/reference.hpp>
#include <attune/testing/drawn_problem.hpp>
#include <attune/thrust.hpp>

namespace attune::test {
namespace {

struct city_block {
  template <class T>
  ATTUNE_HD static T pair(T const& q, T const& k) {
    return -math::abs(T(q - k));
  }
};

std::vector<double> numbers(index_t n, double from) {
  std::vector<double> x;
  for (index_t i = 0; i < n; ++i) x.push_back(0.1 + 0.4 * std::fabs(std::sin(from + 1.7 * double(i))));
  return x;
}

double worst(std::vector<double> const& x, std::vector<double> const& y) {
  double size = 1e-3, error = x.size() == y.size() ? 0 : 1;
  for (double n : y) size = std::fmax(size, std::fabs(n));
  for (std::size_t n = 0; n < y.size() && error < 1; ++n) error = std::fmax(error, std::fabs(x[n] - y[n]) / size);
  return error;
}

TEST_CASE("thrust: every contraction, value and gradients") {
  constexpr index_t heads = 4, width = 5, reach = 13;
  auto const of_heads = numbers(heads * width, 1), shared = numbers(width, 2), values = numbers(heads * 7, 3),
             vectors = numbers((2 * reach + 1) * width, 4), series = numbers(3, 5), more = numbers(3, 6);
  auto const per_head_row = table(tensor<double const>(of_heads, {1, heads, 1, width}));
  auto const one_row = table(tensor<double const>(shared, {1, 1, 1, width}));
  auto const coefficients = table(tensor<double const>(series, {1, 1, 3, 1})),
             others = table(tensor<double const>(more, {1, 1, 3, 1}));
  auto const op =
      attention(kernel::l2{0.1} + kernel::bilinear{per_head_row, 0.2} + kernel::elliptical{one_row, 0.1} +
                    kernel::elementwise<city_block>{0.1} +
                    kernel::transformer_xl(one_row, per_head_row,
                                           table(tensor<double const>(vectors, {1, 1, 2 * reach + 1, width})), 0.3) +
                    kernel::tupe_position{} + kernel::scalar_laplacian{0.7} + kernel::spatial_prior{2} +
                    kernel::relative_bias{table(tensor<double const>(values, {1, heads, 7, 1}))} +
                    kernel::fourier_prior{coefficients, others, coefficients} + kernel::bias{} + kernel::key_bias{},
                gate::two_sided{0.3}, normalizer::valued_off_by_one{}, gate::sigmoid_value{}, gate::sigmoid_output{},
                mask::causal_window{6});
  using op_type = std::remove_const_t<decltype(op)>;

  testing::detail::normal_numbers random(1);
  testing::drawn_problem<op_type> const p({.batch = 2,
                                           .heads = heads,
                                           .queries = 6,
                                           .keys = 9,
                                           .width = width,
                                           .value_width = 3,
                                           .gate_width = 2,
                                           .position_width = 3,
                                           .key_heads = 2,
                                           .value_heads = 2},
                                          random);
  using view = tensor<double const>;
  auto const exec = thrust_on<double>(thrust::host);
  std::vector<double> out(2 * heads * 6 * 3), expected;
  forward(exec, op, p.inputs<view>(), {.out = tensor<double>(out, {2, heads, 6, 3})});
  for (auto const& head : forward(reference<double>{}, op, p.inputs<any_tensor>()).heads)
    for (index_t i = 0; i < 6; ++i)
      for (index_t c = 0; c < 3; ++c) expected.push_back(head.out(i, c));
  CHECK(worst(out, expected) < 1e-13);

  auto const got = vjp(exec, op, p.inputs<view>(), p.cotangents<view>());
  auto const right = vjp(reference<double>{}, op, p.inputs<any_tensor>(), p.cotangents<any_tensor>());
  for (std::size_t f = 0; f < right.fields.size(); ++f)
    CHECK_MESSAGE(worst(got.fields[f].values, right.fields[f].values) < 1e-12, std::string(name_of(field(f))));
  for (std::size_t n = 0; n < right.parameters.size(); ++n)
    CHECK_MESSAGE(worst(got.parameters[n].values.values, right.parameters[n].values.values) < 1e-12,
                  right.parameters[n].path);
  REQUIRE(got.tables.size() == right.tables.size());
  for (std::size_t n = 0; n < right.tables.size(); ++n)
    CHECK_MESSAGE(worst(got.tables[n].values.values, right.tables[n].values.values) < 1e-12, right.tables[n].path);
}

}  // namespace
}  // namespace attune::test
