// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A row to bind policies to by hand.
#pragma once

#include <attune/core/row.hpp>

namespace attune::test {

/// log K may be any number that is easy to compute with. 1/sqrt(D) = 0.5 is D = 4.
inline row<double> row_with(double log_visible, double position = 0, double logit_shift = 0) {
  return {{0, 0, 0, 1}, position, 4, log_visible, 0.5, logit_shift, 4};
}

}  // namespace attune::test
