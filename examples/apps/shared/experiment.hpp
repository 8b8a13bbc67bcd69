// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Programs of experiments: each experiment is a subcommand that writes CSV files and pictures; all of them together
// make a page.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "layer.hpp"
#include "progress.hpp"

namespace apps {

/// What experiments read, and where they write.
struct context {
  std::vector<layer> layers;
  std::filesystem::path output;  ///< for NAME.csv and NAME.svg
  int threads = 1;
  bool quick = false;  ///< few heads, few points: for a test that all of it runs
  progress* bar = nullptr;

  index_t length() const { return layers.front().length; }                         ///< of the text
  index_t heads() const { return index_t(layers.size()) * layers.front().heads; }  ///< of all layers
};

struct picture {
  std::string name;     ///< NAME.gnuplot reads CSV files of the output folder and writes NAME.svg there
  std::string caption;  ///< HTML
};

struct experiment {
  std::string name, title;
  std::string summary;  ///< a line for --help
  std::string paper;    ///< HTML: what the paper says
  std::vector<picture> pictures;
  double cost;  ///< rough seconds, for the progress bar
  /// Computes, writes CSV files, and says what is to be seen, in HTML with the numbers found. Throws std::runtime_error
  /// where what is proved does not hold: then the library is wrong.
  std::function<std::string(context const&)> run;
  double preparation = 0;  ///< rough seconds of what the first experiment of a run computes for the others too
};

/// A program of experiments.
struct program {
  std::string name, about;      ///< for --help
  std::filesystem::path plots;  ///< folder of the gnuplot scripts
  std::string page;             ///< the page is PAGE.html, the default folder of all output PAGE-output
  std::string title;            ///< of the page
  std::function<std::string(context const&)> introduction;  ///< HTML
  std::function<std::string(context const&)> method;        ///< HTML: how it was made
  std::vector<experiment> experiments;
};

/// The main of such a program: a subcommand per experiment, `page` (or nothing) for all of them and the page. Returns
/// the exit
/// status: 2 if an experiment throws, or if something else prevents the run.
int run_program(program const& what, int argc, char** argv);

}  // namespace apps
