// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// GATv2 as a contraction of one's own: a learned number for each feature of a sum that is no product.
#include <vector>

#include <attune/attune.hpp>

#include "../../support/every_call.hpp"
#include "../../support/per_key.hpp"

namespace attune::test {
namespace {

TEST_CASE("gatv2: forward against loops, gradients against differences") {
  random_tables t;
  auto const op = attention(gatv2{t({1, 2, 1, 3})}, mask::causal{});
  testing::problem_extents const e{.heads = 2, .queries = 4, .keys = 7, .width = 3, .value_heads = 2};
  testing::detail::normal_numbers random(3);
  testing::drawn_problem<std::remove_const_t<decltype(op)>> const p(e, random);
  auto const in = p.inputs<tensor<double const>>();
  std::vector<double> out(24);
  forward(cpu<double>{serial{}}, op, in, {.out = tensor<double>(out, {1, 2, 4, 3})});
  for (index_t h = 0; h < 2; ++h)
    for (index_t i = 0; i < 4; ++i) {
      double sum = 0, rows[3] = {};
      for (index_t j = 0; j <= i + 3; ++j) {
        double s = 0;
        for (index_t d = 0; d < 3; ++d) {
          double const x = in.q(0, h, i, d) + in.k(0, 0, j, d);
          s += t.kept[0][std::size_t(h * 3 + d)] * (x > 0 ? x : 0.2 * x);
        }
        sum += std::exp(s);
        for (index_t d = 0; d < 3; ++d) rows[d] += std::exp(s) * in.v(0, h, j, d);
      }
      for (index_t d = 0; d < 3; ++d)
        CHECK(out[std::size_t((h * 4 + i) * 3 + d)] == doctest::Approx(rows[d] / sum).epsilon(1e-12));
    }
  auto const r = testing::check_gradients(op, e, 7);
  INFO(printed(r));
  CHECK(r.passed());
  CHECK(r.line("table kernel.metric").magnitude > 1e-2);
}

}  // namespace
}  // namespace attune::test
