// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   verdict(op, inputs, candidate, {.how = precision(storage::bf16), .must_detect = {{"kernel.scale", 0.01}}})
//
// What a verdict is asked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <attune/core/tensor.hpp>
#include <attune/testing/vocabulary.hpp>

namespace attune::testing {

/// A defect that must not go unnoticed: the name of a finding, and for a parameter how large it is.
struct demanded {
  std::string name;
  double size = 1;
};

struct verdict_options {
  std::optional<precision> how = std::nullopt;  ///< formats of the kernel; by default what its storage type implies
  double gate = 6;                              ///< standard deviations
  index_t rows = 256;                           ///< that projections look at, spread evenly; elements are all compared
  std::vector<demanded> must_detect = {};
};

}  // namespace attune::testing
