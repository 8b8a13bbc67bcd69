// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Small dense arrays with their numbers written out, for tests that know the answer.
#pragma once

#include <limits>
#include <vector>

#include <attune/core/tensor.hpp>

#include "support/random.hpp"

namespace attune::test {

inline constexpr double inf = std::numeric_limits<double>::infinity();
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Owns its numbers; converts to a view of them.
struct dense {
  shape extents;
  std::vector<double> values;

  dense(shape const& e, std::vector<double> x) : extents(e), values(std::move(x)) {}
  dense(shape const& e, double all) : extents(e), values(std::size_t(e.size()), all) {}
  static dense random(rng& from, shape const& e, double low = -1, double high = 1) {
    dense d(e, 0.0);
    for (double& x : d.values) x = f32(from.uniform(low, high));
    return d;
  }
  tensor<double const> view() const { return {values, extents}; }
  operator tensor<double const>() const { return view(); }
};

}  // namespace attune::test
