// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   score s = score_of(text, names, measures, regions, keys, longest);
//
// The score of the text of a report, by rules alone.
#pragma once

#include <sstream>

#include "region.hpp"

namespace attune::test::held {

struct score {
  bool named = false, region = false, measured = false, wrong = false;
  bool useful() const { return named || region || measured; }
};

/// The lines of a text, in lower case and without the spaces at their ends.
inline std::vector<std::string> lines_of(std::string const& text) {
  std::vector<std::string> to;
  std::istringstream from(text);
  for (std::string line; std::getline(from, line);) {
    for (char& c : line) c = char(std::tolower(static_cast<unsigned char>(c)));
    std::size_t const first = line.find_first_not_of(' ');
    to.push_back(first == std::string::npos ? "" : line.substr(first));
  }
  return to;
}

/// named:    a causal line ("behaves as if", "in part"), or line 2 if it is more than the size of residuals, has an
///           accepted name
/// region:   one of the first 3 lines states an accepted region
/// measured: one of the first 12 lines has an accepted measurement
/// wrong:    a causal line that explains more than 60 % has neither an accepted name nor an accepted region
inline score score_of(std::string const& text, std::string const& names, std::string const& measures,
                      std::vector<region> const& regions, indices const& keys, int longest) {
  score to;
  std::regex const name(names), measure(measures.empty() ? "$^" : measures),
      explains("explains? (\\d+(?:\\.\\d+)?) ?%");
  std::vector<std::string> const lines = lines_of(text);
  for (std::size_t n = 1; n < lines.size(); ++n) {
    std::string const& line = lines[n];
    bool const causal = line.rfind("behaves as if", 0) == 0 || line.rfind("in part", 0) == 0;
    bool const sizes = line.find("residuals") != std::string::npos && !causal;
    bool const second = n == 1 && !sizes && line.rfind("no known defect", 0) != 0;
    bool const called = (causal || second) && std::regex_search(line, name);
    bool where = false;
    std::string const cut = std::regex_replace(line, std::regex(" at \\(.*"), "");
    for (region const& r : regions) where = where || accepted(stated_in(cut, longest), r, keys);
    to.named = to.named || called;
    to.region = to.region || (where && n < 3);
    to.measured = to.measured || (n < 12 && !measures.empty() && std::regex_search(line, measure));
    if (causal && !called && !where) {
      std::smatch m;
      if (!std::regex_search(line, m, explains) ? line[0] == 'b' : std::stod(m[1]) > 60) to.wrong = true;
    }
  }
  return to;
}

/// How far one result is from another.
struct distance {
  double rms = 0, most = 0;
};
inline distance between(array const& x, array const& y) {
  distance to;
  for (std::size_t n = 0; n < x.x.size(); ++n) {
    double const off = x.x[n] == y.x[n] ? 0 : x.x[n] - y.x[n], size = std::isfinite(off) ? std::fabs(off) : 1e30;
    to.rms += size * size / double(x.x.size());
    to.most = std::max(to.most, size);
  }
  to.rms = std::sqrt(to.rms);
  return to;
}
/// Whether a result is further from the exact one than rounding leaves it.
inline bool moved(array const& wrong, array const& right, array const& exact) {
  distance const noise = between(right, exact), error = between(wrong, exact), change = between(wrong, right);
  return change.rms > 2 * noise.rms + 1e-30 || error.most > 4 * noise.most + 1e-30;
}

}  // namespace attune::test::held
