// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   words_of_factor(finding)    " (1 / (1 - 0.1): a dropout scale left in?)"
//
// The usual cause of a factor of a whole output or gradient.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include <attune/core/error.hpp>
#include <attune/testing/verdict_report.hpp>

namespace attune::testing::detail {

/// A factor 1 / (1 - p) for a usual p is the scale of a dropout. The nearest p, if the estimate tells it from others.
inline std::string dropout_of(finding const& f) {
  constexpr std::array usual{0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5};
  auto const scale = [&](std::size_t n) { return 1 / (1 - usual[n]) - 1; };
  auto const off = [&](std::size_t n) { return std::fabs(f.estimate - scale(n)); };
  std::size_t nearest = 0;
  for (std::size_t n = 1; n < usual.size(); ++n)
    if (off(n) < off(nearest)) nearest = n;
  if (nearest == 0) return "";
  double const apart = scale(nearest) - scale(nearest - 1);  // from the nearest other one
  if (!(off(nearest) < (std::min)(0.005 * scale(nearest) + f.power / 6, apart / 2))) return "";
  return attune::detail::text(" (1 / (1 - ", usual[nearest], "): a dropout scale left in?)");
}
/// "" for a factor without a usual cause.
inline std::string words_of_factor(finding const& f) {
  // Truncation to bf16 makes a number smaller by up to 2^-7, by 2^-8 on average.
  if (f.estimate < 0 && f.estimate > -0.006) return " (numbers truncated, not rounded?)";
  return dropout_of(f);
}

}  // namespace attune::testing::detail
