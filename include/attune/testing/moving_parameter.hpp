// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   for_each_moving_parameter(op, shape, [](finding f, Op const& op, lift<dual<double, 1>> const& numbers) { ... })
//   with_moved_parameter(op, shape, finding, by, [](Op const& op) { ... })
//
// An operator with a derivative by each of its parameters: relative to its value if it is a scale or positive, else
// absolute. And an operator with another value of one of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <attune/exec/direction.hpp>
#include <attune/exec/problem.hpp>
#include <attune/testing/projection.hpp>
#include <attune/testing/verdict_report.hpp>

namespace attune::testing::detail {

/// A parameter of an operator, and its numbers. An unset scale counts as 1 / sqrt D.
struct numbers_of_parameter {
  parameter* at = nullptr;
  std::vector<double> values = {};

  template <class Op>
  numbers_of_parameter(Op& op, problem_shape const& p, std::string const& path) {
    for (operator_parameter const& other : listed_parameters(op))
      if (other.path() == path) at = &const_cast<parameter&>(*other.at);  // op is not const
    if (at == nullptr) return;
    if (!at->is_set()) *at = parameter(1 / std::sqrt(double(p.width)));
    shape const e = at->extents();
    for (index_t b = 0; b < e.batch; ++b)
      for (index_t h = 0; h < e.head; ++h)
        for (index_t i = 0; i < e.position; ++i) values.push_back(lift<double>{}.value(*at, {b, h, i, p.queries}));
  }
};

/// Usual words for a parameter, after its path: " (the sink)"; "" for none.
template <class Op>
std::string words_of_parameter(Op const& op, std::string const& path) {
  if (path.ends_with("scale"))
    for (operator_parameter const& x : listed_parameters(op))
      if (x.path().ends_with("cap")) return " (or what the cap divides)";
  return Op::has_ground_weight && path == "normalizer.logit" ? " (the sink)" : "";
}

/// Calls visit(finding to fill in, operator, numbers with tangents). Skips parameters that are unset or infinite.
/// Exception: an unset scale counts as 1 / sqrt D.
template <class Op, class Visit>
void for_each_moving_parameter(Op const& original, problem_shape const& p, Visit const& visit) {
  for (operator_parameter const& listed : listed_parameters(original)) {
    finding f;
    std::string const path = f.name = listed.path();
    f.parameter = true;
    f.hint = words_of_parameter(original, path);
    bool const is_scale = path.ends_with("scale"), set = listed.at->is_set();
    if (!set && (path.substr(path.rfind('.') + 1) != "scale" || p.width == 0)) continue;
    f.relative = is_scale || listed.values == domain::positive;
    Op op = original;
    numbers_of_parameter moved(op, p, path);
    attune::detail::number(op);
    if (!std::all_of(moved.values.begin(), moved.values.end(), [](double x) { return std::isfinite(x); })) continue;
    std::vector<double> const along = f.relative ? moved.values : std::vector<double>(moved.values.size(), 1);
    policy_direction to;
    to.parameters.push_back({path, parameter(tensor<double const>(along.data(), moved.at->extents()))});
    attune::detail::moving_numbers<double> const moving(op, to);
    visit(std::move(f), op, moving.numbers());
  }
}

/// Calls visit(operator whose parameter f.name is off by `by`, in the units of f.estimate). Returns false if the
/// operator has no such parameter.
template <class Op, class Visit>
bool with_moved_parameter(Op const& original, problem_shape const& p, finding const& f, double by, Visit const& visit) {
  Op op = original;
  numbers_of_parameter moved(op, p, f.name);
  if (moved.at == nullptr) return false;
  for (double& x : moved.values) x += f.relative ? by * x : by;
  shape const e = moved.at->extents();
  *moved.at = parameter(tensor<double const>(moved.values.data(), e));
  visit(std::as_const(op));
  return true;
}

/// The size of a change at which `cost` is least. Between factors of 1/33 and 33 for relative findings, else within
/// 3.5 of 0.
/// Complexity: 35 costs.
template <class Cost>
double fitted_size(finding const& f, Cost const& cost) {
  constexpr double reach = 3.5, step = 0.5, golden = 0.6180339887498949;
  auto const size = [&](double u) { return f.relative ? std::expm1(u) : u; };
  double nearest = 0, least = math::infinity<double>();
  for (double u = -reach; u <= reach; u += step)
    if (double const c = cost(size(u)); c < least) least = c, nearest = u;
  double from = nearest - step, to = nearest + step;
  double low = to - golden * (to - from), high = from + golden * (to - from);
  double at_low = cost(size(low)), at_high = cost(size(high));
  for (int n = 0; n < 18; ++n)
    if (at_low < at_high) {
      to = high, high = low, at_high = at_low, low = to - golden * (to - from), at_low = cost(size(low));
    } else {
      from = low, low = high, at_low = at_high, high = from + golden * (to - from), at_high = cost(size(high));
    }
  return size(at_low < at_high ? low : high);
}

/// The effect of a parameter that is far off is not proportional to it, and the derivative tells a wrong size. Replaces
/// such a finding by one of the whole change at the size of least cost, if that explains more.
template <class Cost, class Change>
void refit(finding& f, projections const& seen, Cost const& cost, Change const& change) {
  if (!f.parameter || !f.tested || !(std::fabs(f.estimate) > 0.05) || change(0).empty()) return;
  double const size = fitted_size(f, cost);
  std::vector<double> along = change(size);
  for (double& x : along) x /= size;
  finding const moved = seen.judged(f, along);
  if (!(moved.share > f.share)) return;
  finding const derived = std::exchange(f, moved);
  f.power = derived.power, f.power_of_part = derived.power_of_part;  // of small changes
}

}  // namespace attune::testing::detail
