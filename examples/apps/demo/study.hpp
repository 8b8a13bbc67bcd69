// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The study: every preset on every layer, the ablation grid of Principled Attention on one, checked and timed.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "experiment.hpp"

namespace demo {

struct study_options {
  std::filesystem::path data;
  std::vector<int> layers{0, 2};
  int grid_layer = 2;
  int threads = 0;      ///< 0: one per hardware thread
  bool quick = false;   ///< one layer, two heads, an eighth of the grid
  bool quiet = false;   ///< no progress on stderr
  index_t corner = 48;  ///< tokens in a heat map
};

/// Largest error in units of eps * condition that passes. A healthy kernel stays well below (condition.hpp).
inline constexpr double error_limit = 1;
/// Largest difference from the model's stored outputs that passes: they are rounded to float32.
inline constexpr double stored_limit = 1e-6;

/// One preset under one mask, over all layers.
struct preset_result {
  std::string name, mask;
  std::map<int, std::vector<head_report>> heads;  ///< by layer
  double time = 0;  ///< processor seconds per call on the grid's layer, one thread, median
};

/// One variant of Principled Attention: the ground weight over all rows, entropy and errors over one in `grid_step`.
struct grid_result {
  principled_choice choice;
  head_report all;  ///< worst errors, mean ground weight and entropy over heads
  double relative_time = 0;
};

struct study_result {
  study_options options;
  std::vector<std::string> tokens;
  std::vector<layer> layers;
  std::vector<preset_result> presets;
  std::vector<grid_result> grid;
  index_t grid_step = 4;
  index_t timed_heads = 0;        ///< heads of the grid's layer in a timed call of the grid
  double stored_error = 0;        ///< reference<double> softmax against the model's stored outputs
  double all_off_difference = 0;  ///< largest |principled, all off - softmax| on the CPU executor, grid's layer
  double seconds = 0;

  preset_result const& preset(std::string const& name, std::string const& mask) const;
  double worst_error() const;
  bool passed() const { return worst_error() <= error_limit && stored_error <= stored_limit; }
};

/// Worst errors and mean statistics of several heads.
head_report summary(std::vector<head_report> const& heads);

study_result run_study(study_options const& options);

}  // namespace demo
