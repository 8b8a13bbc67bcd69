// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A table of results: comma-separated values with a line of names, as spreadsheets and gnuplot read it.
#pragma once

#include <concepts>
#include <filesystem>
#include <string>
#include <vector>

namespace apps {

class csv {
 public:
  /// A number (nine digits; NaN is an empty cell, which gnuplot leaves out) or a word without commas, quotes and line
  /// ends.
  class cell {
   public:
    cell(std::floating_point auto x) : text_(number(double(x))) {}
    cell(std::integral auto x) : text_(std::to_string(x)) {}
    cell(std::string const& word) : text_(checked(word)) {}
    cell(char const* word) : text_(checked(word)) {}
    std::string const& text() const { return text_; }

   private:
    static std::string number(double x);
    static std::string checked(std::string const& word);
    std::string text_;
  };

  explicit csv(std::vector<std::string> columns);
  /// One cell per column; throws std::invalid_argument if there are more or fewer.
  void row(std::vector<cell> const& cells);
  std::size_t rows() const { return rows_; }
  void save(std::filesystem::path const& file) const;

 private:
  std::size_t columns_, rows_ = 0;
  std::string text_;
};

}  // namespace apps
