// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Tables that `bind` reads: FIRE of width 32 against loops, and its gradients by every entry.
#include "../../support/fire.hpp"

#include <cmath>
#include <vector>

#include <attune/attune.hpp>

#include "../../support/every_call.hpp"

namespace attune::test {
namespace {

TEST_CASE("fire: forward against loops") {
  random_tables t;
  constexpr index_t heads = 2, queries = 20, keys = 70, width = 8;
  auto const op =
      attention(kernel::dot_product{} + fire{t({1, heads, 3, fire::width}), 0.75, 24, 0.25}, mask::causal{});
  testing::detail::normal_numbers random(3);
  testing::drawn_problem<std::remove_const_t<decltype(op)>> const p(
      {.heads = heads, .queries = queries, .keys = keys, .width = width, .key_heads = heads, .value_heads = heads},
      random);
  auto const in = p.inputs<tensor<double const>>();
  std::vector<double> out(std::size_t(heads * queries * width));
  forward(cpu<double>{serial{}}, op, in, {.out = tensor<double>(out, {1, heads, queries, width})});
  for (index_t h = 0; h < heads; ++h)
    for (index_t i = 0; i < queries; ++i) {
      double const position = double(i + keys - queries);
      double const* const w = t.kept[0].data() + h * 3 * fire::width;
      double sum = 0;
      std::vector<double> row(std::size_t(width), 0);
      for (index_t j = 0; j <= i + keys - queries; ++j) {
        double const x = std::log(1 + 0.75 * (position - double(j))) / std::log(1 + 0.75 * std::max(position, 24.));
        double s = 0.25;
        for (index_t n = 0; n < fire::width; ++n)
          s += w[2 * fire::width + n] * std::max(w[n] * x + w[fire::width + n], 0.);
        for (index_t d = 0; d < width; ++d) s += in.q(0, h, i, d) * in.k(0, h, j, d) / std::sqrt(double(width));
        sum += std::exp(s);
        for (index_t d = 0; d < width; ++d) row[std::size_t(d)] += std::exp(s) * in.v(0, h, j, d);
      }
      for (index_t d = 0; d < width; ++d)
        CHECK(out[std::size_t((h * queries + i) * width + d)] ==
              doctest::Approx(row[std::size_t(d)] / sum).epsilon(1e-12));
    }
}

TEST_CASE("fire: every call, gradients by every entry of the tables") {
  random_tables t;
  auto const op = attention(
      (kernel::dot_product{} + fire{t({1, 2, 3, fire::width}), 0.75, 4.5, 0.25}) | bent{t({1, 1, 1, 2}, 0.75, 0.25)},
      mask::causal{});
  check_every_call(op, {.heads = 2, .queries = 3, .keys = 7, .width = 3}, 3);
}

TEST_CASE("fire: a table that is not listed for bind is named") {
  random_tables t;
  table const w = t({1, 1, 1, 2});
  row<xsimd::batch<double>> const r{};
  CHECK_THROWS_WITH_AS(r.entries(w),
                       "attune::row::entries: a table has no entry in the policy's tables() with table_use::bind; "
                       "expected listed(\"name\", &my_policy::name, table_width::any, table_use::bind)",
                       error);
}

}  // namespace
}  // namespace attune::test
