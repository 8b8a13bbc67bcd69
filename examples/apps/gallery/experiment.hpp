// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// An experiment of the gallery: what it computes, which pictures show it, and what is said beside them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "shared/layer.hpp"
#include "shared/progress.hpp"

namespace gallery {

using attune::index_t;

/// What experiments read, and where they write.
struct context {
  std::vector<apps::layer> layers;
  std::filesystem::path output;  ///< for NAME.csv and NAME.svg
  int threads = 1;
  bool quick = false;  ///< fewer rows: for a test that all of it runs
  apps::progress* bar = nullptr;

  index_t length() const { return layers.front().length; }
  index_t heads() const { return index_t(layers.size()) * layers.front().heads; }
};

struct picture {
  std::string name;     ///< plots/NAME.gnuplot reads CSV files of the output folder and writes NAME.svg there
  std::string caption;  ///< HTML
};

struct experiment {
  std::string name, title;
  std::string summary;  ///< a line for --help
  std::string paper;    ///< HTML: what the paper says
  std::vector<picture> pictures;
  double cost;  ///< rough seconds, for the progress bar
  /// Computes, writes CSV files, and says what is to be seen, in HTML with the numbers found.
  /// Throws std::runtime_error where a bound that holds does not: then the library is wrong.
  std::string (*run)(context const&);
};

experiment distances();
experiment critical();
experiment separability();
experiment sensitivity();
experiment weights();
experiment principled_grid();

/// In the order of the page.
std::vector<experiment> all_experiments();

}  // namespace gallery
