// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Compiled where the consumer asked for the component reference.
#include <attune/reference.hpp>

double last_weight(attune::tensor<double const> scores, attune::tensor<double const> v) {
  auto const op = attune::attention(attune::kernel::given_scores{});
  auto const exact = attune::forward(attune::reference<attune::digits50>{}, op, {.v = v, .scores = scores});
  return static_cast<double>(exact.at(0, 0).weights(0, exact.extents.keys - 1));
}
