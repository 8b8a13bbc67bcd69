// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Rows that are read at an ordered sum, on Thrust: forward, statistics and gradients against the reference.
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <support/cope.hpp>
#include <thrust/execution_policy.h>

#include <attune/reference.hpp>
#include <attune/testing/drawn_problem.hpp>
#include <attune/thrust.hpp>

namespace attune::test {
namespace {

double worst(std::vector<double> const& x, std::vector<double> const& y) {
  double size = 1e-3, error = x.size() == y.size() ? 0 : 1;
  for (double n : y) size = std::fmax(size, std::fabs(n));
  for (std::size_t n = 0; n < y.size() && error < 1; ++n) error = std::fmax(error, std::fabs(x[n] - y[n]) / size);
  return error;
}

/// rows: the extents (batch, heads, queries) of position_scores; 1: shared.
template <class Op>
void check_rows(Op const& op, shape const& rows) {
  constexpr index_t heads = 4, queries = 9, keys = 13;
  testing::detail::normal_numbers random(1);
  testing::drawn_problem<Op> p({.batch = 2,
                                .heads = heads,
                                .queries = queries,
                                .keys = keys,
                                .width = 5,
                                .value_width = 3,
                                .key_heads = 2,
                                .value_heads = 2},
                               random);
  auto& scores = p.of(field::position_scores);
  scores.extents = {rows.batch, rows.head, rows.position, scores.extents.feature};
  scores.doubles.resize(std::size_t(scores.extents.size()));
  scores.floats.resize(scores.doubles.size());
  using view = tensor<double const>;
  auto const exec = thrust_on<double>(thrust::host);
  std::vector<double> out(2 * heads * queries * 3), expected;
  auto const saved =
      forward_and_save(exec, op, p.template inputs<view>(), {.out = tensor<double>(out, {2, heads, queries, 3})});
  auto const exact = forward(reference<double>{}, op, p.template inputs<any_tensor>());
  for (auto const& head : exact.heads)
    for (index_t i = 0; i < queries; ++i)
      for (index_t c = 0; c < 3; ++c) expected.push_back(head.out(i, c));
  CHECK(worst(out, expected) < 1e-13);

  statistics_request const request{.entropy = true, .columns = true};
  auto const s = statistics(exec, op, p.template inputs<view>(), saved, request), right_s = statistics(exact, request);
  CHECK(worst(s.mass, right_s.mass) < 1e-13);
  CHECK(worst(s.mean_logit, right_s.mean_logit) < 1e-13);
  CHECK(worst(s.columns, right_s.columns) < 1e-13);

  auto const got = vjp(exec, op, p.template inputs<view>(), p.template cotangents<view>());
  auto const right = vjp(reference<double>{}, op, p.template inputs<any_tensor>(), p.template cotangents<any_tensor>());
  for (std::size_t f = 0; f < right.fields.size(); ++f)
    CHECK_MESSAGE(worst(got.fields[f].values, right.fields[f].values) < 1e-12, std::string(name_of(field(f))));
  for (std::size_t n = 0; n < right.parameters.size(); ++n)
    CHECK_MESSAGE(worst(got.parameters[n].values.values, right.parameters[n].values.values) < 1e-12,
                  right.parameters[n].path);
}

TEST_CASE("thrust: rows read at a sum over later keys") {
  std::vector<double> const rates{0.3, 1.2, 0.7, 0.1};
  check_rows(attention(cope{per_head(rates)}, mask::causal{}), {2, 4, 9, 0});
}
TEST_CASE("thrust: shared rows read at a sum over earlier keys") {
  check_rows(attention(cope_before{} + kernel::alibi{0.1},
                       mask::predicate([](mask_row const& r, index_t j) { return (r.query * 7 + j * 5) % 3 != 0; })),
             {1, 4, 1, 0});
}

}  // namespace
}  // namespace attune::test
