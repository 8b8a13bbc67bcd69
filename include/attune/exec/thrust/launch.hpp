// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   for_each_task(executor, tasks, program):   program(n) for n in [0, tasks), on the executor's policy
//
// Runs thrust::for_each_n. For a CUDA policy, it launches its own kernel on the policy's stream instead. The kernel
// behind for_each_n holds four copies of what it calls (two items per thread, full and partial tiles). A row program
// would pay for these in registers and in minutes of compilation.
#pragma once

#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>

#include <attune/core/device_program.hpp>
#include <attune/exec/thrust/executor.hpp>

namespace attune::exec_thrust {

#if defined(__CUDACC__)
template <class Policy>
cudaStream_t stream_of(Policy policy) {
  return ::thrust::cuda_cub::stream(policy);
}

/// Waits for the kernel where for_each_n would: not for policies with `nosync`.
template <class Policy, class Program>
void launch(Policy policy, index_t tasks, Program const& program) {
  attune::detail::launch_program(stream_of(policy), tasks, program);
  ::thrust::cuda_cub::throw_on_error(::thrust::cuda_cub::synchronize_optional(policy), "attune: a program failed");
}
#endif

/// Runs program(n) for n in [0, tasks).
template <class Exec, class Program>
void for_each_task(Exec const& exec, index_t tasks, Program const& program) {
  if (tasks <= 0) return;
#if defined(__CUDACC__)
  if constexpr (Exec::memory == memory_kind::device)
    launch(exec.policy, tasks, program);
  else
#endif
    ::thrust::for_each_n(exec.policy, ::thrust::counting_iterator<index_t>(0), tasks, program);
}

}  // namespace attune::exec_thrust
