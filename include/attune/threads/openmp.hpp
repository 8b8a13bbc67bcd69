// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   cpu<>{openmp{}}:  the threads of the compiler's OpenMP runtime. Needs -fopenmp; attune.hpp does not include it.
#pragma once

#ifndef _OPENMP
#error \
    "attune/threads/openmp.hpp: compile with -fopenmp (CMake: OpenMP::OpenMP_CXX); without OpenMP, cpu{} has its own threads"
#endif

#include <omp.h>

#include <attune/threads/executor.hpp>

namespace attune {

/// The team that `#pragma omp parallel` would use here: omp_get_max_threads() threads unless the call names a number.
/// Inside an active parallel region, the calling thread alone.
struct openmp {
  /// omp_get_max_threads(), or 1 inside a parallel region.
  int concurrency() const { return omp_in_parallel() ? 1 : omp_get_max_threads(); }
  /// Runs the workers on a team of `workers` threads, or serially inside a parallel region.
  void run(int workers, worker_body const& body) const {
    if (workers <= 1 || omp_in_parallel()) {
      serial{}.run(workers, body);
      return;
    }
#pragma omp parallel for num_threads(workers) schedule(static, 1)
    for (int w = 0; w < workers; ++w) body(w);
  }
};

}  // namespace attune
