// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   sort_q_i = <q_i, u> + a,   sort_k_j = <k_j, w> + b,   tau = softplus(x)     u, w, a, b, x per head: what is learned
//
// Scalar coordinates of real heads. The paper projects a token's hidden state; here that is not at hand, only what the
// head made of it.
#pragma once

#include <cstdint>

#include "stretch.hpp"

namespace scalar_sort {

/// All that is learned in a layer, one array after the other.
struct projections {
  index_t heads, width;
  numbers values;  ///< per head: u, a, w, b, x

  std::size_t query(index_t h) const { return std::size_t(h * (2 * width + 3)); }
  std::size_t key(index_t h) const { return query(h) + std::size_t(width) + 1; }
  std::size_t bandwidth(index_t h) const { return key(h) + std::size_t(width) + 1; }

  scalars of(stretch const& s) const;
  numbers tau() const;
};

/// Random directions, the scalars of either side of mean 0 and variance 1 on this stretch. The same for the same seed,
/// on every machine.
projections random_projections(stretch const& s, float tau, std::uint64_t seed);

struct slopes;
/// d loss / d values from the gradients by scalars and by tau.
numbers chain(projections const& p, stretch const& s, slopes const& by);

}  // namespace scalar_sort
