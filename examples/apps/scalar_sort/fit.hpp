// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   per head:  unexplained + lambda_a Lk L_align + lambda_s L_spread + lambda_t log(1 + tau)   ->  least, by Adam
//
// Scalar projections of real heads learned by gradient descent, without and with each regularizer.
#pragma once

#include <string>
#include <vector>

#include "projections.hpp"
#include "shared/experiment.hpp"

namespace scalar_sort {

/// Which regularizers a fit has. Lk: the loss counts all pairs in its divisor, so that a coefficient per query has to
/// grow with the length.
struct variant {
  std::string name;
  float alignment, spread, temperature;  ///< the lambdas
};
std::vector<variant> const& variants();

struct fit_step {
  int step;
  numbers unexplained, tau;  ///< per head
  float key_deviation;       ///< standard deviation of the sort keys, mean over heads
};

/// A layer fitted with one variant. trained, held_out: the halves of the text.
struct fitted_layer {
  apps::layer const* of;
  projections start, learned;
  std::vector<fit_step> history;
  stretch trained() const { return {of, 0, of->length / 2}; }
  stretch held_out() const { return {of, of->length / 2, of->length / 2}; }
};

struct fitted {
  variant with;
  std::vector<fitted_layer> layers;
};

/// All variants on all layers from the same random projections and tau; adds about `cost` to the progress bar.
std::vector<fitted> fit_all(apps::context const& c, double cost);

}  // namespace scalar_sort
