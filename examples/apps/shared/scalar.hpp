// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// softmax of -(q - k_j)^2 / tau, by the policy.
#pragma once

#include <vector>

#include <attune/analysis/weights.hpp>
#include <attune/policies/kernel/scalar.hpp>

namespace apps {

inline std::vector<double> scalar_scores(double q, std::vector<double> const& k, double tau) {
  auto const bound = attune::kernel::scalar_sort{tau}.bind(attune::row<double>{});
  std::vector<double> s;
  for (double x : k) s.push_back(bound.score(q - x, attune::key<double>{0}));
  return s;
}
inline std::vector<double> scalar_weights(double q, std::vector<double> const& k, double tau) {
  return attune::analysis::softmax(scalar_scores(q, k, tau));
}

}  // namespace apps
