// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A dot plot: one column per head, one kind of mark per system.
#pragma once

#include <string>
#include <vector>

namespace demo {

struct series {
  std::string name;
  std::vector<double> values;  ///< one per head
};

struct chart_axis {
  std::string title;  ///< with its unit
  double highest = 1, step = 0.2;
  double line = -1;  ///< a dashed line, if >= 0
  std::string line_name;
};

std::string chart(std::vector<series> const& all, chart_axis const& axis, std::string const& title);
std::string chart_legend(std::vector<series> const& all);

}  // namespace demo
