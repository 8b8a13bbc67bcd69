// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The page of a program of experiments: what the paper says, what was seen, pictures. It needs no other file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiment.hpp"

namespace apps {

struct finding {
  experiment what;
  std::string seen;  ///< what run() returned
};

/// The pictures are taken from the output folder.
void write_page(std::filesystem::path const& file, program const& p, context const& c,
                std::vector<finding> const& findings);

/// A <table>: the first row is its head. Cells are HTML.
std::string html_table(std::vector<std::vector<std::string>> const& rows);

/// HTML for a terminal: without its tags, tables as lines, x<sup>2</sup> as x^2.
std::string plain(std::string const& html);

}  // namespace apps
