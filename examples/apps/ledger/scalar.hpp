// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// softmax of -(q - k_j)^2 / tau, by the policy.
#pragma once

#include <attune/policies/kernel/scalar.hpp>

#include "common.hpp"

namespace ledger {

inline numbers scalar_scores(double q, numbers const& k, double tau) {
  auto const bound = attune::kernel::scalar_sort{tau}.bind(attune::row<double>{});
  numbers s;
  for (double x : k) s.push_back(bound.score(q - x, attune::key<double>{0}));
  return s;
}
inline numbers scalar_weights(double q, numbers const& k, double tau) { return softmax(scalar_scores(q, k, tau)); }

}  // namespace ledger
