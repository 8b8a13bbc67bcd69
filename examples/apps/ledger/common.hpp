// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What several papers' checks share.
#pragma once

#include <cmath>

#include <attune/analysis/weights.hpp>

#include "claim.hpp"
#include "shared/scalar.hpp"

namespace ledger {

namespace analysis = attune::analysis;
using apps::scalar_scores;
using apps::scalar_weights;
using attune::index_t;

/// |x - y| of vectors, the largest entry.
inline double largest_difference(numbers const& x, numbers const& y) {
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) worst = std::fmax(worst, std::fabs(x[i] - y[i]));
  return worst;
}
inline bool close(double x, double y, double tolerance = 1e-12) {
  return std::fabs(x - y) <= tolerance * (1 + std::fabs(y));
}
/// a <= b up to rounding.
inline bool at_most(double a, double b) { return a <= b + 1e-11 * (1 + std::fabs(a) + std::fabs(b)); }
inline numbers softmax(numbers const& scores, double temperature = 1) { return analysis::softmax(scores, temperature); }

}  // namespace ledger
