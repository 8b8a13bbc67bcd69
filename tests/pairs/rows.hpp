// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   for (design_row const& r : design()) r.run(seed, record);
//
// The rows of the design, without their types.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "../bits/hash.hpp"

namespace attune::pairs {

/// What a drawn problem did.
struct run_record {
  std::set<std::string> facts, calls;
  std::vector<std::string> failures;
  std::map<std::string, bits::hash> bits;  ///< of what each call computed
};

/// An operator of the design.
struct design_row {
  int number = 0;
  std::string text;                ///< its policies
  std::set<std::string> features,  ///< of its policies
      calls;                       ///< that it makes
  /// Draws a problem from a seed and runs it.
  void (*run)(std::uint64_t, run_record&) = nullptr;
};

/// Row `Number` of the design, where it is compiled.
template <int Number>
design_row row_number();
/// The rows that this program has.
std::vector<design_row> const& design();

}  // namespace attune::pairs
