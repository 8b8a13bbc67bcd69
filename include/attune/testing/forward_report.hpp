// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   std::cout << report;   return report.passed() ? 0 : 1;
//
// The results of a forward check: a line for every executor and call, with the largest error as a share of what is
// allowed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include <attune/core/error.hpp>
#include <attune/core/number_text.hpp>

namespace attune::testing {

/// One call of one executor against 50 digits.
struct forward_line {
  std::string executor;  ///< "cpu<float>"
  std::string call;      ///< "forward", "forward_and_save", "decode", "split and merge", "statistics"
  double share = 0;   ///< the largest |computed - exact| / allowed; infinity where only one of them is NaN or infinite
  std::string where;  ///< the number with the largest share: "out (0, 1, 3, 2)"
  std::string left_out;  ///< the reason why the call was skipped; empty if it was made

  bool made() const { return left_out.empty(); }         ///< the call was not skipped
  bool passed() const { return !made() || share <= 1; }  ///< skipped, or within the allowed error
};

/// The result of check_forward.
struct forward_report {
  std::uint64_t seed = 0;                  ///< of the random problem
  std::vector<forward_line> lines;         ///< one per executor and call
  std::string varied;                      ///< what the second problem drew: "batch 2, 3 queries, ..."; empty: none
  std::vector<forward_line> varied_lines;  ///< of the second problem

  /// Whether every call that was made is within the allowed error.
  bool passed() const {
    auto const all = [](std::vector<forward_line> const& x) {
      return std::all_of(x.begin(), x.end(), [](forward_line const& l) { return l.passed(); });
    };
    return !lines.empty() && all(lines) && all(varied_lines);
  }
  /// The line of an executor and a call. Throws attune::error if there is none.
  forward_line const& line(std::string const& executor, std::string const& call) const {
    auto const at = std::find_if(lines.begin(), lines.end(),
                                 [&](forward_line const& l) { return l.executor == executor && l.call == call; });
    if (at == lines.end())
      throw error("forward_report::line", "executor and call", "the values " + executor + " and " + call,
                  "those of a line, as \"cpu<float>\" and \"forward\"");
    return *at;
  }
};

/// Prints one line for each call: the largest error as a share of what is allowed, and its place if it is too large; or
/// the reason why the call was skipped.
inline std::ostream& operator<<(std::ostream& to, forward_report const& r) {
  std::size_t names = 0, calls = 0;
  for (forward_line const& l : r.lines)
    names = (std::max)(names, l.executor.size()), calls = (std::max)(calls, l.call.size());
  auto const print = [&](forward_line const& l) {
    std::string executor = l.executor, call = l.call;
    executor.resize(names, ' ');
    call.resize(calls, ' ');
    to << (l.made() ? l.passed() ? "ok    " : "WRONG " : "-     ") << executor << "  " << call << "  ";
    if (!l.made()) {
      to << "left out: " << l.left_out << '\n';
      return;
    }
    to << attune::detail::number_text(l.share, 2) << " of what is allowed";
    if (!l.passed()) to << ", at " << l.where;
    to << '\n';
  };
  for (forward_line const& l : r.lines) print(l);
  if (!r.varied_lines.empty()) {
    auto const wrong =
        std::count_if(r.varied_lines.begin(), r.varied_lines.end(), [](forward_line const& l) { return !l.passed(); });
    to << (wrong == 0 ? "ok    " : "WRONG ") << "a second problem: " << r.varied << '\n';
    for (forward_line const& l : r.varied_lines)
      if (!l.passed()) print(l);
  }
  return to << (r.passed() ? "forward agrees" : "FORWARD IS WRONG") << " (seed " << std::to_string(r.seed) << ")\n";
}

}  // namespace attune::testing
