// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What simd_in_double_test.cpp samples, for every float and for many doubles.
#include "function_bounds.hpp"

namespace attune::test {

TEST_SUITE("full_functions") {
  TEST_CASE("floats: every bit pattern") { check_patterns(1); }
  TEST_CASE("doubles: ten million random arguments") {
    check_random<xsimd::batch<double>>(10'000'000, 2);
    check_random<xsimd::batch<double>>(100'000, fresh_seed());
  }
  TEST_CASE("floats: pow at ten million random arguments") { check_random<xsimd::batch<float>>(10'000'000, 3); }
}

}  // namespace attune::test
