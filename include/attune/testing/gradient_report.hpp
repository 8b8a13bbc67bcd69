// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   std::cout << report;   return report.passed() ? 0 : 1;
//
// The results of a gradient check: a line for every input, parameter and table, with the largest error of each route.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include <attune/core/number_text.hpp>
#include <attune/core/tensor.hpp>

namespace attune::testing {

/// The largest difference between two routes to one gradient, and the entry where it occurs.
struct gradient_error {
  index_t compared = 0;     ///< number of entries; 0: the route was not taken
  double largest = 0;       ///< NaN if either route has a NaN
  double allowed = 0;       ///< the largest difference that passes
  shape where{0, 0, 0, 0};  ///< (batch, head, position, feature)

  /// Whether the route was not taken, or is within the allowed difference.
  bool passed() const { return compared == 0 || largest <= allowed; }
};

/// One input, parameter or table of the operator.
struct gradient_line {
  std::string
      name;  ///< "input q", "parameter kernel.slope", "parameter normalizer.alpha.weight", "table kernel.metric"
  double magnitude = 0;        ///< the largest entry of its gradient
  gradient_error differences,  ///< central differences of the forward pass in 50 digits
      cpu_double,              ///< vjp on cpu<double>
      cpu_float;               ///< vjp on cpu<float>
  std::string note;            ///< the reason why no differences were taken; empty if they were

  /// Whether every route passes.
  bool passed() const { return differences.passed() && cpu_double.passed() && cpu_float.passed(); }
};

/// The result of check_gradients.
struct gradient_report {
  std::uint64_t seed = 0;                   ///< of the random problem
  double magnitude = 0;                     ///< the largest entry of all gradients
  std::vector<gradient_line> lines;         ///< one per input, parameter and table
  gradient_line directions;                 ///< all numbers changed at once, along random directions
  std::string varied;                       ///< what the second problem drew: "batch 2, 3 queries, ..."; empty: none
  std::vector<gradient_line> varied_lines;  ///< of the second problem, its directions last

  /// Whether all routes agree everywhere. An objective that does not depend on anything proves nothing and does not
  /// pass.
  bool passed() const {
    auto const all = [](std::vector<gradient_line> const& x) {
      return std::all_of(x.begin(), x.end(), [](gradient_line const& l) { return l.passed(); });
    };
    return magnitude > 0 && directions.passed() && all(lines) && all(varied_lines);
  }
  /// The line of that name, "input q". Throws attune::error if there is none.
  gradient_line const& line(std::string const& name) const {
    auto const at = std::find_if(lines.begin(), lines.end(), [&](gradient_line const& l) { return l.name == name; });
    if (at == lines.end())
      throw error("gradient_report::line", "name", "the value " + name, "the name of a line, as \"input v\"");
    return *at;
  }
};

namespace detail {

inline std::string printed(char const* route, gradient_error const& e) {
  std::string const s =
      std::string(route) + " " + attune::detail::number_text(e.largest, 1, std::chars_format::scientific);
  return e.passed() ? s : s + " at " + to_string(e.where) + " IS WRONG";
}
inline std::string printed(gradient_line const& l, std::size_t width) {
  std::string const size = attune::detail::number_text(l.magnitude, 1, std::chars_format::scientific);
  std::string s = (l.passed() ? "ok    " : "WRONG ") + l.name;
  s.resize((std::max)(width, s.size()), ' ');
  s += "  up to " + std::string(8 - (std::min<std::size_t>)(8, size.size()), ' ') + size;
  if (l.differences.compared > 0) s += "; " + printed("differences", l.differences);
  if (l.cpu_double.compared > 0) s += "; " + printed("cpu<double>", l.cpu_double);
  if (l.cpu_float.compared > 0) s += "; " + printed("cpu<float>", l.cpu_float);
  return l.note.empty() ? s : s + "; no differences: " + l.note;
}

}  // namespace detail

/// Prints one line for each gradient: its size, and the error of each route; also the place if an error is too large.
inline std::ostream& operator<<(std::ostream& to, gradient_report const& r) {
  std::size_t width = r.directions.name.size();
  for (gradient_line const& l : r.lines) width = (std::max)(width, l.name.size());
  width += 6;
  for (gradient_line const& l : r.lines) to << detail::printed(l, width) << '\n';
  if (r.directions.differences.compared > 0) to << detail::printed(r.directions, width) << '\n';
  if (!r.varied_lines.empty()) {
    auto const wrong =
        std::count_if(r.varied_lines.begin(), r.varied_lines.end(), [](gradient_line const& l) { return !l.passed(); });
    to << (wrong == 0 ? "ok    " : "WRONG ") << "a second problem: " << r.varied << '\n';
    for (gradient_line const& l : r.varied_lines)
      if (!l.passed()) to << detail::printed(l, width) << '\n';
  }
  to << (r.passed()        ? "gradients agree"
         : r.magnitude > 0 ? "GRADIENTS ARE WRONG"
                           : "NO GRADIENT: nothing moves the objective")
     << " (seed " << std::to_string(r.seed) << ")\n";
  return to;
}

}  // namespace attune::testing
