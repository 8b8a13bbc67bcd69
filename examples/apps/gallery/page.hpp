// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Pictures by gnuplot, and the page that holds them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiment.hpp"

namespace gallery {

/// Runs plots/NAME.gnuplot for every picture of an experiment: NAME.svg in the output folder.
/// Throws std::runtime_error where gnuplot fails.
void draw(experiment const& e, context const& c, std::string const& gnuplot);

struct finding {
  experiment what;
  std::string seen;  ///< what run() returned
};

/// Writes `file`: one HTML page that needs no other file; the pictures are taken from the output folder.
void write_page(std::filesystem::path const& file, context const& c, std::vector<finding> const& findings, double seconds);

}  // namespace gallery
