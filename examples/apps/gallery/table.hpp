// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   table t({"L", "N", "median"});   t.add({512, 5, 0.25});   t.write(folder / "distances.csv");
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "shared/text.hpp"

namespace gallery {

/// Numbers in named columns, as comma-separated values. NaN is written as nothing, which gnuplot leaves out.
class table {
 public:
  explicit table(std::vector<std::string> columns) : columns_(columns.size()) { line(columns); }

  /// One row. Throws std::logic_error unless there is a number for every column.
  void add(std::vector<double> const& numbers) {
    if (numbers.size() != columns_)
      throw std::logic_error(apps::text("a row of %zu numbers for %zu columns", numbers.size(), columns_));
    std::vector<std::string> cells;
    for (double const x : numbers) cells.push_back(x == x ? apps::text("%.9g", x) : "");
    line(cells);
  }
  void write(std::filesystem::path const& file) const {
    apps::write_file(file, [&](std::ostream& to) { to << lines_; });
  }

 private:
  void line(std::vector<std::string> const& cells) {
    for (std::size_t n = 0; n < cells.size(); ++n) lines_ += (n > 0 ? "," : "") + cells[n];
    lines_ += '\n';
  }

  std::size_t columns_;
  std::string lines_;
};

}  // namespace gallery
