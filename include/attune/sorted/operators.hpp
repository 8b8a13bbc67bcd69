// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   sorted::laplacian{tau}      sorted::sliced_relu{divisor::one}      sorted::gaussian{tau, 1e-6}
//
// The operators on a line of keys, whatever runs them: threads of the CPU (sorted/{laplacian,sliced_relu,gaussian}.hpp)
// or Thrust (sorted/thrust/).
#pragma once

#include <attune/core/parameter.hpp>
#include <attune/policies/concepts.hpp>
#include <attune/sorted/visibility.hpp>

namespace attune::sorted {

/// line::laplacian (line/operators.hpp has its bounds and costs) in the older convention; tau shared or per head.
struct laplacian {
  parameter tau = 1;
  visibility sees{};
};

/// line::sliced_relu: normalizer::relu is divisor::one, mean_relu count, normalized_relu sum.
/// lse with divisor::sum only.
struct sliced_relu {
  divisor divided_by = divisor::one;
  visibility sees{};
};

/// line::gaussian; tau shared or per head.
struct gaussian {
  parameter tau = 1;
  double tolerance = 1e-6;
  visibility sees{};
};

}  // namespace attune::sorted
