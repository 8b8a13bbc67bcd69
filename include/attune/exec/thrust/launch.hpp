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

#include <attune/exec/thrust/executor.hpp>

namespace attune::exec_thrust {

#if defined(__CUDACC__)
inline constexpr int threads_of_block = 128;

/// One block on a multiprocessor is enough. Told only the number of threads, ptxas spills to make room for more blocks.
template <class Program>
__global__ void __launch_bounds__(threads_of_block, 1)
    program_kernel(Program const __grid_constant__ program, index_t tasks) {
  index_t const n = index_t(blockIdx.x) * threads_of_block + index_t(threadIdx.x);
  if (n < tasks) program(n);
}

template <class Policy>
cudaStream_t stream_of(Policy policy) {
  return ::thrust::cuda_cub::stream(policy);
}

/// Throws unless host and device agree about the size of a program. nvcc 13 lays out [[no_unique_address]] members in
/// another way in the arguments of a kernel: the device would read numbers where there are none.
template <class Program>
bool require_same_layout() {
  std::size_t offset = 0, size = 0;
  ::thrust::cuda_cub::throw_on_error(
      cudaFuncGetParamInfo(reinterpret_cast<void const*>(&program_kernel<Program>), 0, &offset, &size),
      "attune: the arguments of a program are unknown");
  if (size != sizeof(Program))
    throw error("thrust_on", "the operator", attune::detail::text(size, " bytes on the device"),
                attune::detail::text(sizeof(Program), ", as on the host: policies without [[no_unique_address]]"));
  return true;
}

/// Waits for the kernel where for_each_n would: not for policies with `nosync`.
template <class Policy, class Program>
void launch(Policy policy, index_t tasks, Program const& program) {
  static bool const checked = require_same_layout<Program>();
  static_cast<void>(checked);
  auto const blocks = static_cast<unsigned>((tasks + threads_of_block - 1) / threads_of_block);
  program_kernel<<<blocks, threads_of_block, 0, stream_of(policy)>>>(program, tasks);
  ::thrust::cuda_cub::throw_on_error(cudaGetLastError(), "attune: the launch of a program failed");
  ::thrust::cuda_cub::throw_on_error(::thrust::cuda_cub::synchronize_optional(policy), "attune: a program failed");
}
#endif

/// Runs program(n) for n in [0, tasks).
template <class Exec, class Program>
void for_each_task(Exec const& exec, index_t tasks, Program const& program) {
  if (tasks <= 0) return;
#if defined(__CUDACC__)
  if constexpr (Exec::memory == memory_kind::device) {
    static_assert(
        sizeof(Program) + sizeof(index_t) <= 4096,
        "attune: the parameters and tables of this operator do not fit into the 4 KiB of a CUDA kernel's arguments: "
        "policies hold at most some 15 of them; compute what is constant beforehand");
    launch(exec.policy, tasks, program);
  } else
#endif
    ::thrust::for_each_n(exec.policy, ::thrust::counting_iterator<index_t>(0), tasks, program);
}

}  // namespace attune::exec_thrust
