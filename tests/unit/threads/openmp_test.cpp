// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Compiled with -fopenmp where there is one. Not under the thread sanitizer, which does not see how the OpenMP runtime
// synchronises.
#if defined(_OPENMP) && !defined(__SANITIZE_THREAD__)
#include <doctest/doctest.h>

// [snippet: openmp]
#include <attune/attune.hpp>
#include <attune/threads/openmp.hpp>  // compile with -fopenmp

constexpr attune::cpu on_openmp{attune::openmp{}};
// [/snippet]

#include "threading.hpp"

namespace attune::test {
namespace {

TEST_CASE("openmp: every task once, on as many threads of the team as asked for") {
  std::vector<std::atomic<int>> runs(20);
  exec_cpu::parallel(openmp{}, 3, 20, [&] { return [&](index_t task) { ++runs[std::size_t(task)]; }; });
  for (auto const& n : runs) CHECK(n == 1);
  std::atomic<int> met = 0;
  exec_cpu::parallel(openmp{}, 2, 2, [&] {
    return [&](index_t) {
      ++met;
      await([&] { return met == 2; });
    };
  });
  CHECK(met == 2);
  CHECK(on_openmp.executor.concurrency() == omp_get_max_threads());
}

TEST_CASE("openmp: inside an active region a call stays on its thread") {
  std::atomic<int> strangers = 0, tasks = 0;
  int const levels = omp_get_max_active_levels();
  omp_set_max_active_levels(2);  // OpenMP itself would allow a team of teams
#pragma omp parallel num_threads(2)
  {
    auto const here = std::this_thread::get_id();
    auto const body = [&](int) {
      strangers += std::this_thread::get_id() != here;
      ++tasks;
    };
    openmp{}.run(5, body);
    if (omp_in_parallel()) strangers += openmp{}.concurrency() - 1;
  }
  omp_set_max_active_levels(levels);
  CHECK(tasks == 10);
  CHECK(strangers == 0);
}

TEST_CASE("openmp: the bits of a serial call") {
  auto const expected = bits_of(serial{}, 1);
  for (int threads : {0, 2, 3}) CHECK(bits_of(openmp{}, threads) == expected);
}

}  // namespace
}  // namespace attune::test
#endif
