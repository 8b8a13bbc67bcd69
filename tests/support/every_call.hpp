// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   check_every_call(op, extents, seed)      forward, decode, split, statistics, vjp and jvp, for operators of a test
//
// A jvp is checked by its duality with a vjp: <d, J x> = <J^T d, x>.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <attune/attune.hpp>
#include <attune/testing/forward_check.hpp>
#include <attune/testing/gradient_check.hpp>

#include "report.hpp"

namespace attune::test {

/// Tables of random numbers, of mean `mean` and of deviation `size`.
struct random_tables {
  testing::detail::normal_numbers random{5};
  std::deque<std::vector<double>> kept = {};
  table operator()(shape const& e, double mean = 0, double size = 0.7) {
    auto& x = kept.emplace_back();
    for (index_t n = 0; n < e.size(); ++n) x.push_back(double(float(mean + size * random())));
    return tensor<double const>(x, e);
  }
};

/// jvp along random directions of all inputs, parameters and tables against vjp.
template <class Op>
void check_duality(Op const& op, testing::problem_extents const& extents, std::uint64_t seed) {
  testing::detail::normal_numbers random(seed);
  testing::drawn_problem<Op> const p(extents, random), along(extents, random);
  using view = tensor<double const>;
  auto const g = vjp(cpu<double>{serial{}}, op, p.template inputs<view>(), p.template cotangents<view>());
  policy_direction direction;
  random_tables moved;
  double expected = 0, size = 0;
  auto const add = [&](double x) { expected += x, size += std::fabs(x); };
  auto const parameters = listed_parameters(op);
  for (std::size_t n = 0; n < parameters.size(); ++n) {
    double const x = random();
    direction.parameters.push_back({parameters[n].path(), x});
    for (double by : g.parameters[n].values.values) add(x * by);
  }
  auto const tables = listed_tables(op);
  for (std::size_t n = 0; n < tables.size(); ++n) {
    direction.tables.push_back({tables[n].path(), moved(tables[n].at->extents())});
    for (std::size_t e = 0; e < moved.kept.back().size(); ++e) add(moved.kept.back()[e] * g.tables[n].values.values[e]);
  }
  for_each_field([&]<field F>() {
    if constexpr (Op::uses(F))
      for (std::size_t e = 0; e < along.of(F).doubles.size(); ++e) add(along.of(F).doubles[e] * g.of(F).values[e]);
  });
  auto const moving = make_inputs<Op, moving_tensor<double>>([&]<field F>() {
    return moving_tensor<double>(p.of(F).template view<view>(), along.of(F).template view<view>());
  });
  auto const r = jvp(cpu<double>{serial{}}, op, moving, direction);
  double got = 0;
  auto const pair = [&](gradient_array<double> const& x, testing::detail::drawn_tensor const& by) {
    for (std::size_t n = 0; n < x.values.size(); ++n) got += x.values[n] * by.doubles[n];
  };
  pair(r.out_along, p.by_out());
  if constexpr (Op::has_lse) pair(r.lse_along, p.by_lse());
  if constexpr (Op::has_ground_weight) pair(r.ground_weight_along, p.by_ground_weight());
  CAPTURE(expected);
  CAPTURE(got);
  CHECK(size > 1e-2);
  CHECK(std::fabs(got - expected) <= 1e-12 * (1 + size));
}

/// Every call of the CPU executors against the reference.
template <class Op>
void check_every_call(Op const& op, testing::problem_extents const& e, std::uint64_t seed) {
  auto const computed = testing::check_forward(op, e, seed);
  INFO(printed(computed));
  CHECK(computed.passed());
  auto const r = testing::check_gradients(op, e, seed + 1);
  INFO(printed(r));
  CHECK(r.passed());
  check_duality(op, e, seed + 2);
}

/// Results and gradients of another executor against the CPU executor's.
template <class Exec, class Op>
void check_other(Exec const& exec, Op const& op, testing::problem_extents const& e, std::uint64_t seed) {
  auto const computed = testing::check_forward(op, e, seed, {}, exec);
  INFO(printed(computed));
  CHECK(computed.passed());
  testing::detail::normal_numbers random(seed);
  testing::drawn_problem<Op> const p(e, random);
  using view = tensor<double const>;
  auto const expected = vjp(cpu<double>{serial{}}, op, p.template inputs<view>(), p.template cotangents<view>());
  auto const got = vjp(exec, op, p.template inputs<view>(), p.template cotangents<view>());
  std::vector<gradient_array<double> const*> right;
  testing::detail::for_each_gradient(expected,
                                     [&](std::string const&, gradient_array<double> const& x) { right.push_back(&x); });
  std::size_t at = 0;
  testing::detail::for_each_gradient(got, [&](std::string const& name, gradient_array<double> const& x) {
    auto const& y = right[at++]->values;
    REQUIRE(x.values.size() == y.size());
    double worst = 0, largest = 0;
    for (std::size_t n = 0; n < y.size(); ++n) {
      largest = std::fmax(largest, std::fabs(y[n]));
      worst = std::isnan(x.values[n]) ? INFINITY : std::fmax(worst, std::fabs(x.values[n] - y[n]));
    }
    CHECK_MESSAGE(worst <= 1e-11 * (1 + largest), name);
  });
}

}  // namespace attune::test
