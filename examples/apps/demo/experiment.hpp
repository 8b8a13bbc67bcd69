// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// One system under one mask, behind functions that do not know its type: what the main program runs, checks and times.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "condition.hpp"
#include "shared/layer.hpp"

namespace demo {

/// What the CPU executor computes for one layer.
struct computed {
  std::vector<float> out;            ///< (head, query, feature)
  std::vector<float> ground_weight;  ///< (head, query); empty where the system has none
};

/// What the reference says about one head of it. Errors are in units of eps * condition (condition.hpp), eps = 2^-23
/// for float, 2^-52 for double, and include those of the ground weight.
struct head_report {
  double error = 0;            ///< cpu<float> against reference<double>, every element of the rows checked
  double digits_error = 0;     ///< cpu<float> against reference<digits50>, sample rows
  double reference_error = 0;  ///< reference<double> against reference<digits50>, sample rows
  double stored_error = 0;    ///< reference<double> against the model's stored output, absolute; meaningful for softmax
  double ground = 0;          ///< mean w0 over rows
  double entropy = 0;         ///< mean over rows of -sum w log w, the ground among them, in nats
  std::vector<float> corner;  ///< for the first `corner` queries: w0, then the weights of the first `corner` keys
};

/// What to check of a head.
struct check_plan {
  row_range rows;               ///< a step above 1 only without mask
  std::vector<index_t> sample;  ///< of these, the n-th rows that 50 digits are spent on
  index_t corner = 0;           ///< size of the weight matrix to keep
};

struct experiment {
  std::string name, mask;
  std::function<computed(layer const&, int threads)> run;
  std::function<void(layer const&, index_t heads, computed&)>
      run_again;  ///< single thread, first heads only: for timing
  std::function<head_report(layer const&, magnitudes const&, computed const&, check_plan const&)> check;
};

/// softmax, off-by-one, sink, ssmax, principled; without mask, then causal.
std::vector<experiment> preset_experiments();

/// A variant of Principled Attention, without mask. All variants are one operator type: granularity is a value.
experiment principled_experiment(principled_choice const& choice);
experiment causal_principled_experiment(principled_choice const& choice);

}  // namespace demo
