// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "compare.hpp"

#include <cmath>
#include <cstdio>
#include <limits>

namespace attune::golden {
namespace {

double error_ratio(double got, double expected, double bound) {
  if (got == expected || (std::isnan(got) && std::isnan(expected))) return 0;
  if (!std::isfinite(got) || !std::isfinite(expected) || !(bound > 0)) return std::numeric_limits<double>::infinity();
  return std::abs(got - expected) / bound;
}

std::string print(double x, char const* format) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, format, x);
  return buffer;
}

}  // namespace

difference compare(tensor const& expected, std::vector<double> const& got, std::vector<double> const& bounds) {
  difference result;
  if (got.size() != expected.data.size() || bounds.size() != expected.data.size()) {
    result.accepted = false;
    result.ratio = std::numeric_limits<double>::infinity();
    result.problem = std::to_string(got.size()) + " entries, expected " + std::to_string(expected.data.size());
    return result;
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    double const ratio = error_ratio(got[i], expected.data[i], bounds[i]);
    if (i > 0 && !(ratio > result.ratio)) continue;
    result.worst = i;
    result.got = got[i];
    result.expected = expected.data[i];
    result.ratio = ratio;
  }
  result.accepted = result.ratio <= 1;
  return result;
}

std::string describe(difference const& d, std::vector<index> const& shape) {
  if (!d.problem.empty()) return d.problem;
  std::string where;
  auto rest = static_cast<index>(d.worst);
  for (auto extent = shape.rbegin(); extent != shape.rend(); ++extent) {
    where = std::to_string(*extent > 0 ? rest % *extent : 0) + (where.empty() ? "" : ",") + where;
    if (*extent > 0) rest /= *extent;
  }
  return "[" + where + "] got " + print(d.got, "%.17g") + ", expected " + print(d.expected, "%.17g") +
         ", error / tolerance " + print(d.ratio, "%.3g");
}

}  // namespace attune::golden
