// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Keys and queries drawn at random, by a law that is known.
#pragma once

#include <functional>

#include "shared/random.hpp"
#include "windows.hpp"

namespace scalar_sort {

/// One head. Scalars by `query` and `key` (the j-th key of n); vectors of `width` standard normal numbers, so that the
/// dot products over sqrt(width) have variance 1; standard normal values of width 8.
struct law {
  index_t keys, queries, width;
  float tau;
  std::function<double(apps::rng&)> query;
  std::function<double(apps::rng&, index_t)> key;
};
heads_in_context drawn(law const& by, std::uint64_t seed);

}  // namespace scalar_sort
