// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <support/statistics_fuzz.hpp>

#include <attune/attune.hpp>

namespace attune::test {
namespace {

struct on_cpu {
  template <class T>
  cpu<T> of(int threads) const {
    return cpu<T>{threads};
  }
};

TEST_CASE("statistics: fuzz, fixed seed") {
  statistics_fuzz::fuzz(on_cpu{}, "fixed seed", statistics_fuzz::fixed_seed, case_count(0.02));
}

TEST_CASE("statistics: fuzz, fresh seed") {
  statistics_fuzz::fuzz(on_cpu{}, "fresh seed", fresh_seed(), case_count(0.02));
}

}  // namespace
}  // namespace attune::test
