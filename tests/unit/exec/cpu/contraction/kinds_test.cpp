// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Every kind of contraction over full tiles of queries and full blocks of keys: values, gradients and directional
// derivatives. Under AddressSanitizer this fills every piece of scratch to its end.
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include <attune/attune.hpp>
#include <attune/reference.hpp>
#include <attune/testing/drawn_problem.hpp>

namespace attune::test {
namespace {

using attune::testing::drawn_problem;
using attune::testing::problem_extents;

constexpr problem_extents extents{.heads = 4,
                                  .queries = 70,
                                  .keys = 150,
                                  .width = 6,
                                  .value_width = 5,
                                  .gate_width = 3,
                                  .position_width = 3,
                                  .axes = 2,
                                  .key_heads = 2,
                                  .value_heads = 2};

void check_near(std::vector<double> const& got, std::vector<double> const& expected) {
  REQUIRE(got.size() == expected.size());
  double largest = 1, error = 0;
  for (double x : expected) largest = std::fmax(largest, std::fabs(x));
  for (std::size_t n = 0; n < got.size(); ++n) error = std::fmax(error, std::fabs(got[n] - expected[n]));
  CHECK(error <= 1e-11 * largest);
}

/// The problem's inputs, all of which move along themselves.
template <class Op, class Moving, class View>
inputs<Op, Moving> moving(inputs<Op, View> const& in) {
  return make_inputs<Op, Moving>([&]<field F>() -> Moving { return {member<F>(in), member<F>(in)}; }, std::nullopt,
                                 std::nullopt);
}

template <class Op>
void check_all(Op const& op) {
  attune::testing::detail::normal_numbers random(21);
  drawn_problem<Op> const p(extents, random, {}, "kinds");
  auto const in = p.template inputs<tensor<double const>>();
  auto const exact = p.template inputs<any_tensor>();
  shape const rows{1, extents.heads, extents.queries, extents.value_width};
  std::vector<double> out(std::size_t(rows.size())), expected(out);
  cpu<double> const exec(1);
  forward(exec, op, in, {.out = tensor<double>(out, rows)});
  forward(reference<double>{}, op, exact, {.out = tensor<double>(expected, rows)});
  check_near(out, expected);

  tensor<double const> const by_out(out, rows);
  auto const g = vjp(exec, op, in, {.out = by_out});
  auto const h = vjp(reference<double>{}, op, exact, {.out = by_out});
  for (std::size_t f = 0; f < g.fields.size(); ++f) check_near(g.fields[f].values, h.fields[f].values);
  for (std::size_t n = 0; n < g.tables.size(); ++n) check_near(g.tables[n].values.values, h.tables[n].values.values);

  auto const a = jvp(exec, op, moving<Op, moving_tensor<double>>(in));
  auto const b = jvp(reference<double>{}, op, moving<Op, tangent_tensor>(exact));
  std::vector<double> along;
  for (index_t head = 0; head < extents.heads; ++head)
    for (index_t i = 0; i < extents.queries; ++i)
      for (index_t d = 0; d < extents.value_width; ++d) along.push_back(b.at(0, head).out(i, d).tangent[0]);
  check_near(a.out_along.values, along);
}

std::vector<double> numbers(index_t n, double scale) {
  std::vector<double> x;
  for (index_t i = 0; i < n; ++i) x.push_back(scale * std::sin(double(i * i % 97)));
  return x;
}

TEST_CASE("contractions of every kind, over full tiles and blocks") {
  auto const metric = numbers(4 * 6, 0.3), values = numbers(4 * 41, 0.3), rows = numbers(440 * 6, 0.3);
  tensor<double const> const per_head(metric, shape{1, 4, 1, 6}), near(values, shape{1, 4, 41, 1}),
      relative(rows, shape{1, 1, 440, 6});
  rotary_angles<double> const angles(rotary_frequencies::plain(6), 220);
  check_all(attention(kernel::bilinear{per_head} + kernel::elliptical{per_head} + kernel::spatial_prior{3.0} +
                          kernel::relative_bias{near} + kernel::bias{},
                      gate::softplus{0.1}, mask::causal{}));
  check_all(attention(kernel::transformer_xl(per_head, per_head, relative) + kernel::scalar_sort{2.0}, mask::causal{}));
  check_all(attention(kernel::rbf{0.4} + kernel::fourier_prior{near, near, near}, mask::causal{}));
  check_all(attention(kernel::rotary{.angles = angles}, mask::causal{}));
}

}  // namespace
}  // namespace attune::test
