// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What most unit tests need beside doctest: infinities, the text of an error, relative distance.
#pragma once

#include <cmath>
#include <limits>
#include <string>

#include <doctest/doctest.h>

#include <attune/core/error.hpp>

namespace attune::test {

inline constexpr double inf = std::numeric_limits<double>::infinity();
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double ln2 = 0.693147180559945309;
inline constexpr double ln3 = 1.098612288668109691;

/// The text of the attune::error that f throws; "" if it throws nothing.
template <class F>
std::string error_of(F const& f) {
  try {
    f();
  } catch (error const& e) {
    return e.what();
  }
  return {};
}

/// |x - y| <= tolerance |y|, also between equal infinities. Relative, so that 1e-300 is not 0.
inline bool near(double x, double y, double tolerance = 1e-14) {
  return x == y || std::fabs(x - y) <= tolerance * std::fabs(y);
}

}  // namespace attune::test
