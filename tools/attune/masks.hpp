// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   --mask causal --mask padding=lengths.npy        several masks: a key is visible if all of them show it
//
// Masks in words become one mask::runtime: an interval per row where each of them has one, and a table of Lq x Lk bytes
// only for those that have not.
#pragma once

#include <string>
#include <vector>

#include "problem.hpp"

namespace attune::tool {

/// Throws usage_error for words that are no mask, and attune::error where a mask does not fit the problem. `offset` is
/// the position of query 0 among the keys.
mask_memory make_mask(std::vector<std::string> const& words, attune::mask_shape const& of, index_t offset);

/// The masks there are, for --help.
char const* mask_help();

}  // namespace attune::tool
