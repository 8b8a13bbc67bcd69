// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A table with a row for each key: contraction::per_key is the input key_bias with learned numbers.
#include "../../support/per_key.hpp"

#include <cmath>
#include <string>
#include <vector>

#include <attune/attune.hpp>

#include "../../support/every_call.hpp"

namespace attune::test {
namespace {

TEST_CASE("per key: a table is the input key_bias with learned numbers") {
  random_tables t;
  constexpr index_t heads = 2, queries = 40, keys = 150, width = 8;
  table const b = t({1, heads, keys, 1}, 3, 0.25);
  testing::detail::normal_numbers random(3);
  auto const given = attention(kernel::dot_product{} + kernel::key_bias{}, mask::causal{});
  using given_op = std::remove_const_t<decltype(given)>;
  testing::problem_extents const e{
      .heads = heads, .queries = queries, .keys = keys, .width = width, .key_heads = heads};
  testing::drawn_problem<given_op> const p(e, random);
  auto in = p.inputs<tensor<double const>>();
  std::vector<double> logs;
  for (double x : t.kept.back()) logs.push_back(std::log(x));
  in.key_bias = tensor<double const>(logs, {1, heads, keys, 1});
  auto const learned = attention(popular_dot{b}, mask::causal{});
  std::vector<double> out(std::size_t(heads * queries * width)), expected(out.size());
  shape const rows{1, heads, queries, width};
  forward(cpu<double>{serial{}}, given, in, {.out = tensor<double>(expected, rows)});
  forward(cpu<double>{serial{}}, learned, {.q = in.q, .k = in.k, .v = in.v}, {.out = tensor<double>(out, rows)});
  for (std::size_t n = 0; n < out.size(); ++n) CHECK(out[n] == doctest::Approx(expected[n]).epsilon(1e-13));
}

TEST_CASE("per key: a table that does not fit is named") {
  random_tables t;
  auto const op = attention(popular_dot{t({1, 1, 3, 1}, 3, 0.25)});
  std::vector<double> const some(8, 1);
  tensor<double const> const x(some, {1, 1, 4, 2});
  std::vector<double> out(8);
  CHECK_THROWS_WITH_AS(
      forward(cpu<double>{serial{}}, op, {.q = x, .k = x, .v = x}, {.out = tensor<double>(out, {1, 1, 4, 2})}),
      "attune::forward: table per_key has 3 rows; expected 4, one for each key", error);
}

TEST_CASE("per key: every call, with a table of one head and a table of several columns") {
  random_tables t;
  check_every_call(attention(learned_keys{t({1, 1, 7, 3}), t({1, 2, 7, 1})}, mask::causal{}),
                   {.heads = 2, .queries = 4, .keys = 7, .width = 3}, 3);
}

}  // namespace
}  // namespace attune::test
