// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   for_each_moving_parameter(op, shape, [](finding f, Op const& op, lift<dual<double, 1>> const& numbers) { ... })
//
// An operator with a derivative by each of its parameters: relative to its value if it is a scale or positive, else
// absolute.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <attune/exec/direction.hpp>
#include <attune/exec/problem.hpp>
#include <attune/testing/verdict_report.hpp>

namespace attune::testing::detail {

/// Calls visit(finding to fill in, operator, numbers with tangents). Skips parameters that are unset or infinite.
/// Exception: an unset scale counts as 1 / sqrt D.
template <class Op, class Visit>
void for_each_moving_parameter(Op const& original, problem_shape const& p, Visit const& visit) {
  for (operator_parameter const& listed : listed_parameters(original)) {
    finding f;
    std::string const path = f.name = listed.path();
    f.parameter = true;
    bool const is_scale = path.ends_with("scale"), set = listed.at->is_set();
    if (!set && (path.substr(path.rfind('.') + 1) != "scale" || p.width == 0)) continue;
    f.relative = is_scale || listed.values == domain::positive;
    Op op = original;
    parameter* moved = nullptr;
    for (operator_parameter const& other : listed_parameters(op))
      if (other.path() == path) moved = &const_cast<parameter&>(*other.at);  // op is not const
    if (!set) *moved = parameter(1 / std::sqrt(double(p.width)));
    attune::detail::number(op);
    shape const e = moved->extents();
    std::vector<double> along;
    bool movable = true;  // false at an infinite value
    for (index_t b = 0; b < e.batch; ++b)
      for (index_t h = 0; h < e.head; ++h)
        for (index_t i = 0; i < e.position; ++i) {
          double const x = lift<double>{}.value(*moved, {b, h, i, p.queries});
          along.push_back(f.relative ? x : 1);
          movable = movable && std::isfinite(x);
        }
    if (!movable) continue;
    policy_direction to;
    to.parameters.push_back({path, parameter(tensor<double const>(along.data(), e))});
    attune::detail::moving_numbers<double> const moving(op, to);
    visit(std::move(f), op, moving.numbers());
  }
}

}  // namespace attune::testing::detail
