// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   launch_program(stream, tasks, program):   program(n) for n in [0, tasks), on a CUDA device
//
// The kernel behind the programs of the executors thrust and cuda, and the check of what a kernel receives. For nvcc:
// elsewhere this header is empty.
#pragma once

#if defined(__CUDACC__)

#include <cuda_runtime_api.h>

#include <attune/core/error.hpp>
#include <attune/core/tensor.hpp>

namespace attune::detail {

/// Throws unless a call of CUDA succeeded. `what` names the step.
inline void require_success(cudaError_t e, char const* what) {
  if (e != cudaSuccess) throw error("CUDA", what, cudaGetErrorString(e), "success");
}

/// Throws unless the first argument of a kernel has this size on the device. nvcc 13 lays out [[no_unique_address]]
/// members in another way in the arguments of a kernel: the device would read numbers where there are none.
template <class Kernel>
bool require_same_layout(Kernel* kernel, std::size_t expected) {
  std::size_t offset = 0, size = 0;
  require_success(cudaFuncGetParamInfo(reinterpret_cast<void const*>(kernel), 0, &offset, &size),
                  "the arguments of a kernel");
  if (size != expected)
    throw error("a CUDA kernel", "the operator", text(size, " bytes on the device"),
                text(expected, ", as on the host: policies without [[no_unique_address]]"));
  return true;
}

inline constexpr int threads_of_block = 128;

/// One block on a multiprocessor is enough. Told only the number of threads, ptxas spills to make room for more blocks.
template <class Program>
__global__ void __launch_bounds__(threads_of_block, 1)
    program_kernel(Program const __grid_constant__ program, index_t tasks) {
  index_t const n = index_t(blockIdx.x) * threads_of_block + index_t(threadIdx.x);
  if (n < tasks) program(n);
}

/// Runs program(n) for n in [0, tasks) in the order of a stream; returns before it is done.
template <class Program>
void launch_program(cudaStream_t stream, index_t tasks, Program const& program) {
  static_assert(
      sizeof(Program) + sizeof(index_t) <= 4096,
      "attune: the parameters and tables of this operator do not fit into the 4 KiB of a CUDA kernel's arguments: "
      "policies hold at most some 15 of them; compute what is constant beforehand");
  static bool const checked = require_same_layout(&program_kernel<Program>, sizeof(Program));
  static_cast<void>(checked);
  if (tasks <= 0) return;
  auto const blocks = static_cast<unsigned>((tasks + threads_of_block - 1) / threads_of_block);
  program_kernel<<<blocks, threads_of_block, 0, stream>>>(program, tasks);
  require_success(cudaGetLastError(), "the launch of a program");
}

}  // namespace attune::detail

#endif
