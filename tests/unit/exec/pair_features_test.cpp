// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// contraction::by_pair: a row of features for each pair, in a contraction with a term.
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include <attune/attune.hpp>
#include <attune/testing/forward_check.hpp>
#include <attune/testing/gradient_check.hpp>

#include "../../support/grid.hpp"
#include "../check.hpp"

namespace attune::test {
namespace {

template <class Report>
std::string printed(Report const& r) {
  std::ostringstream to;
  to << r;
  return to.str();
}

/// <q_i, r_n> with a row r_n of features for each pair: no executor has code for it but for its term.
struct by_pair_dot : contraction::sum_of<contraction::of_query<field::q>, contraction::by_pair<contraction::tables::values>> {
  template <class S>
  static S term(S const& q, S const& r, S const&, S const&) {
    return q * r;
  }
};
struct contextual : grid_bias {
  using contraction = by_pair_dot;
  static constexpr auto tables() { return std::tuple{listed("values", &grid_bias::values, table_width::query)}; }
};

TEST_CASE("grid: a row of features for each pair, by the terms of a contraction") {
  std::vector<double> const rows = grid_numbers(49 * 2 * 3, 6);
  contextual k;
  k.values = tensor<double const>(rows, {1, 2, 49, 3});
  k.columns = 4, k.reach = 3;
  auto const op = attention(k, mask::causal_window{5});
  testing::problem_extents const e{.heads = 2, .queries = 7, .keys = 13, .width = 3};
  auto const computed = testing::check_forward(op, e, 6);
  CHECK_MESSAGE(computed.passed(), printed(computed));
  auto const r = testing::check_gradients(op, {.heads = 2, .queries = 3, .keys = 6, .width = 3}, 7);
  CHECK_MESSAGE(r.passed(), printed(r));
  CHECK(r.line("table kernel.values").magnitude > 1e-3);
}

}  // namespace
}  // namespace attune::test
