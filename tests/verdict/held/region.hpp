// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   region where = region_of(wrong - right, "queries", noise);   accepted(stated_in(line), where)
//
// The region of wrong numbers, from the results, and the regions that a line of a report states.
#pragma once

#include <array>
#include <map>
#include <regex>

#include "problem.hpp"

namespace attune::test::held {

using indices = std::vector<bool>;

/// The product of sets along the axes of an output.
struct region {
  std::map<std::string, indices> sets;  ///< "batch", "heads", "queries", "keys", "features"
};
inline std::size_t count(indices const& x) { return std::size_t(std::count(x.begin(), x.end(), true)); }

/// "0, 3..7"
inline std::string words_of(indices const& x) {
  std::string to;
  for (std::size_t n = 0; n < x.size(); ++n) {
    if (!x[n]) continue;
    std::size_t last = n;
    while (last + 1 < x.size() && x[last + 1]) ++last;
    to += (to.empty() ? "" : ", ") + std::to_string(n) + (last > n ? ".." + std::to_string(last) : "");
    n = last;
  }
  return to;
}
inline std::string words_of(region const& r) {
  std::string to;
  for (auto const& [axis, set] : r.sets)
    if (count(set) < set.size()) to += (to.empty() ? "" : "; ") + axis + " " + words_of(set);
  return to.empty() ? "everywhere" : to;
}

/// Where a difference is: the slices along each axis whose root mean square is above half of the noise.
inline region region_of(array const& wrong, array const& right, char const* positions, char const* features,
                        double noise) {
  std::array<std::vector<double>, 4> sums{
      std::vector<double>(std::size_t(wrong.batch)), std::vector<double>(std::size_t(wrong.heads)),
      std::vector<double>(std::size_t(wrong.length)), std::vector<double>(std::size_t(wrong.width))};
  for (int b = 0; b < wrong.batch; ++b)
    for (int h = 0; h < wrong.heads; ++h)
      for (int i = 0; i < wrong.length; ++i)
        for (int c = 0; c < wrong.width; ++c) {
          double const x = wrong(b, h, i, c), y = right(b, h, i, c), off = x == y ? 0 : x - y;
          double const square = std::isfinite(off) ? off * off : 1e6;
          int const at[] = {b, h, i, c};
          for (std::size_t n = 0; n < 4; ++n) sums[n][std::size_t(at[n])] += square;
        }
  region to;
  char const* const names[] = {"batch", "heads", positions, features};
  for (std::size_t n = 0; n < 4; ++n) {
    double const each = double(wrong.x.size()) / double(sums[n].size());
    indices set;
    for (double x : sums[n]) set.push_back(x > each * noise * noise / 4);
    to.sets[names[n]] = set;
  }
  return to;
}

/// The regions that a line states, as lists of indices.
inline std::map<std::string, std::vector<int>> stated_in(std::string const& line, int longest) {
  static std::string const axis =
      "\\b(batch elements?|batch|heads?|queries|query|rows?|keys?|positions?|features?|lanes?|columns?)";
  static std::string const list = "(\\d+(?:\\.\\.\\d+)?(?:(?:, | and )\\d+(?:\\.\\.\\d+)?)*)";
  static std::regex const modulo(axis + "(?: [a-z])?(?: with| where| at| of)?(?: [a-z])? mod (\\d+) (?:in|=|is) " +
                                 list),
      plain(axis + "(?:[a-z ]{0,40}:)? " + list);
  auto const name = [](std::string const& x) -> std::string {
    return x[0] == 'b'                  ? "batch"
           : x[0] == 'h'                ? "heads"
           : x[0] == 'q' || x[0] == 'r' ? "queries"
           : x[0] == 'k'                ? "keys"
           : x[0] == 'p'                ? "positions"
                                        : "features";
  };
  auto const numbers = [](std::string const& x) {
    std::vector<int> to;
    static std::regex const item("(\\d+)(?:\\.\\.(\\d+))?");
    for (std::sregex_iterator m(x.begin(), x.end(), item), end; m != end; ++m) {
      int const from = std::stoi((*m)[1]), until = (*m)[2].matched ? std::stoi((*m)[2]) : from;
      for (int n = from; n <= until && n < from + 100000; ++n) to.push_back(n);
    }
    return to;
  };
  std::map<std::string, std::vector<int>> to;
  std::string rest = line;
  for (std::smatch m; std::regex_search(rest, m, modulo);) {
    int const by = std::max(1, std::stoi(m[2]));
    for (int k : numbers(m[3]))
      for (int n = k; n < longest; n += by) to[name(m[1])].push_back(n);
    rest = m.prefix().str() + " ; " + m.suffix().str();
  }
  for (std::sregex_iterator m(rest.begin(), rest.end(), plain), end; m != end; ++m)
    for (int n : numbers((*m)[2])) to[name((*m)[1])].push_back(n);
  return to;
}

/// Whether the stated sets hold 90 % of the true region, are at most twice its size and at most half of everything.
/// `keys`: the keys that are treated wrongly, which may stand alone; empty: unknown.
inline bool accepted(std::map<std::string, std::vector<int>> const& stated, region const& truth, indices const& keys) {
  auto const as_set = [](std::vector<int> const& x, std::size_t n) {
    indices set(n);
    for (int k : x)
      if (std::size_t(k) < n) set[std::size_t(k)] = true;
    return set;
  };
  auto const fits = [](double inside, double size, double part) { return inside >= 0.9 && size <= 2 && part <= 0.5; };
  auto const shares = [&](indices const& set, indices const& right, double& inside, double& size, double& part) {
    double both = 0;
    for (std::size_t n = 0; n < set.size(); ++n) both += set[n] && right[n];
    double const whole = std::max(1.0, double(count(right)));
    inside *= both / whole, size *= double(count(set)) / whole, part *= double(count(set)) / double(set.size());
  };
  double inside = 1, size = 1, part = 1;
  if (auto const found = stated.find("keys"); found != stated.end() && !keys.empty()) {
    shares(as_set(found->second, keys.size()), keys, inside, size, part);
    if (fits(inside, size, part)) return true;
  }
  inside = size = part = 1;
  for (auto const& [axis, right] : truth.sets) {
    auto found = stated.find(axis);
    if (found == stated.end() && (axis == "queries" || axis == "keys")) found = stated.find("positions");
    shares(found == stated.end() ? indices(right.size(), true) : as_set(found->second, right.size()), right, inside,
           size, part);
  }
  return fits(inside, size, part);
}

}  // namespace attune::test::held
