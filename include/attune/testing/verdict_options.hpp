// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   verdict(op, inputs, candidate, {.how = precision(storage::bf16), .must_detect = {{"kernel.scale", 0.01}}})
//
// The options of a verdict.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <attune/core/tensor.hpp>
#include <attune/testing/vocabulary.hpp>

namespace attune::testing {

/// A defect that must be noticed: the name of a finding and, for a parameter, its size.
struct demanded {
  std::string name;  ///< of a finding: "kernel.scale", or the end of it after a dot, "scale"
  double size = 1;   ///< must be noticed at this size, in the units of finding::estimate
};

/// Options of verdict.
struct verdict_options {
  std::optional<precision> how = std::nullopt;  ///< formats of the kernel; by default derived from its storage type
  double gate = 6;                              ///< standard deviations
  index_t rows = 256;                      ///< rows for projections, drawn in every head; all elements are compared
  std::uint64_t seed = 1;                  ///< of the drawn rows
  index_t page = 0;                        ///< keys of a page of the cache: a FAIL then looks for stale pages
  double lse_roundings = 8;                ///< of an lse by which a kernel may normalize `out`; 0: it divides by sums
  bool proved_only = false;                ///< FAIL only where an element is outside its certified bound
  std::vector<demanded> must_detect = {};  ///< a verdict that could not notice one of these is undecidable
};

}  // namespace attune::testing
