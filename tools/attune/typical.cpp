// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "typical.hpp"

namespace attune::tool {

double typical_value(parameter_entry const& p) {
  return p.expected == "a finite number > 1" ? 2 : p.expected == "a number in [1, 4]" ? 1.5 : 0.5;
}

shape typical_extents(preset const& of, table_entry const& t, index_t width) {
  index_t const rows = t.width == table_width::query_row ? 1 : of.name == "t5" ? 8 : 11;
  return {1, 1, rows, t.width == table_width::one ? 1 : width};
}

problem typical_operator(preset const& of, index_t width, std::uint64_t seed) {
  problem to;
  testing::detail::normal_numbers random(seed);
  for (auto const& p : of.parameters)
    if (p.fallback.empty())
      for (auto const& path : p.paths) to.parameters[path] = {{1, 1, 1, 1}, {typical_value(p)}, {}};
  for (auto const& t : of.tables) {
    numbers x{typical_extents(of, t, width), {}, {}};
    for (index_t n = 0; n < x.extents.size(); ++n) x.doubles.push_back(double(float(0.1 + random.uniform())));
    to.tables[t.path] = std::move(x);
  }
  for (auto const& c : of.constants)
    if (c.name == "k") to.constants["k"] = 2;
  return to;
}

}  // namespace attune::tool
