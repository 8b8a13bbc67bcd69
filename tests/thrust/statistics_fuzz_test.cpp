// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "../support/statistics_fuzz.hpp"

#include <omp.h>
#include <thrust/system/omp/execution_policy.h>

#include <attune/thrust.hpp>

namespace attune::test {
namespace {

struct on_openmp {
  template <class T>
  auto of(int threads) const {
    omp_set_num_threads(threads);
    return thrust_on<T>(::thrust::omp::par);
  }
};

TEST_CASE("thrust: statistics, fuzz, fixed seed") {
  statistics_fuzz::fuzz(on_openmp{}, "fixed seed", statistics_fuzz::fixed_seed, case_count(0.02));
}

TEST_CASE("thrust: statistics, fuzz, fresh seed") {
  statistics_fuzz::fuzz(on_openmp{}, "fresh seed", fresh_seed(), case_count(0.02));
}

}  // namespace
}  // namespace attune::test
