// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Pictures of errors, as SVG to be put into a page.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <attune/testing/verdict_report.hpp>

namespace attune::tool {

/// Numbers in rows and columns.
struct grid {
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;  ///< row-major
};

/// The worst error / bound of an output by (batch and head, position).
grid by_head_and_position(testing::worst_element const& e);
/// The same by (position, feature).
grid by_position_and_feature(testing::worst_element const& e);
/// No larger than this: cells are merged in blocks of equal size, the worst of each stays. A NaN is the worst there is.
grid merged(grid const& g, std::size_t rows, std::size_t columns);

/// A cell per number. Grey: within the bound; yellow to red: 1 to 1,000 bounds and beyond; black: NaN or infinite.
std::string heat_map(grid const& g, std::string const& title, std::string const& down, std::string const& across);
/// A bar per number, zero in the middle: by how much of its weight each key is off.
std::string bars(std::vector<double> const& values, std::string const& title);

/// Text made safe for HTML.
std::string escaped(std::string const& raw);

}  // namespace attune::tool
