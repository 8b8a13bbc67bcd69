// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "csv.hpp"

#include <cmath>
#include <stdexcept>

#include "text.hpp"

namespace apps {

std::string csv::cell::number(double x) { return std::isnan(x) ? "" : apps::text("%.9g", x); }

std::string csv::cell::checked(std::string const& word) {
  if (word.find_first_of(",\"\r\n") != std::string::npos)
    throw std::invalid_argument("csv: a cell is \"" + word +
                                "\"; expected a word without commas, quotes and line ends");
  return word;
}

csv::csv(std::vector<std::string> columns) : columns_(columns.size()) {
  for (std::string const& name : columns) text_ += (text_.empty() ? "" : ",") + cell(name).text();
  text_ += "\n";
}

void csv::row(std::vector<cell> const& cells) {
  if (cells.size() != columns_)
    throw std::invalid_argument("csv: a row of " + std::to_string(cells.size()) + " cells; expected " +
                                std::to_string(columns_));
  bool first = true;
  for (cell const& c : cells) {
    text_ += (first ? "" : ",") + c.text();
    first = false;
  }
  text_ += "\n";
  ++rows_;
}

void csv::save(std::filesystem::path const& file) const {
  write_file(file, [&](std::ostream& to) { to << text_; });
}

}  // namespace apps
