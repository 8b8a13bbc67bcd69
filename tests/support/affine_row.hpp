// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The numbers of a row under an affine normalizer, by its formula.
#pragma once

#include <cmath>
#include <string>

#include "problems.hpp"

namespace attune::test {

/// w = alpha p + share / keys of a row under an affine normalizer: alpha, share = average - alpha, and what divides it.
struct affine_row {
  double alpha, share, keys, average;
};
inline affine_row affine_of(policies const& what, problem const& p, dimensions const& n, result const& r, index b,
                            index h, index i) {
  auto const row = [&](char const* name, double fallback) { return parameter(p, name, n.heads, b, h, i, fallback); };
  double const pre = row("alpha_pre", 0);
  double const alpha = p.parameters.count("alpha_pre") == 0 ? row("affine_alpha", 1)
                       : what.normalizer.find("clipping") != std::string::npos
                           ? std::fmin(std::fmax(pre / 10 + 0.5, 0), 1)
                           : 1 / (1 + std::exp(-pre));
  double const average = r.average.empty() ? row("average", 1) : element(r.average, n.heads, 0, h, 0);
  bool const total = what.normalizer.find("total") != std::string::npos;
  double const keys = static_cast<double>(total ? n.keys : visible_count(p, n, b, h, i));
  return {alpha, what.is("free") ? row("affine_beta", 0) : average - alpha, keys, average};
}

}  // namespace attune::test
