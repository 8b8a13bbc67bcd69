// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   launch_program(stream, tasks, program):   program(n) for n in [0, tasks), on a CUDA device
//
// The kernel behind the programs of the executors thrust and cuda, and the check of what a kernel receives. For nvcc:
// elsewhere this header is empty.
#pragma once

#if defined(__CUDACC__)

#include <type_traits>

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

/// The most bytes of a kernel's arguments, on sm_70 and later, with CUDA 12.1 and a driver 530 and later.
inline constexpr std::size_t kernel_argument_bytes = 32764;

/// kernel(arguments...) in the order of a stream. `what` names the step. Errors: the status of this launch.
/// An error that an earlier call left behind stays there for the caller's own cudaGetLastError().
template <class... Given>
void launch(char const* what, void (*kernel)(Given...), unsigned blocks, unsigned threads, std::size_t shared,
            cudaStream_t stream, std::type_identity_t<Given> const&... arguments) {
  void* all[] = {const_cast<void*>(static_cast<void const*>(&arguments))...};
  require_success(
      cudaLaunchKernel(reinterpret_cast<void const*>(kernel), dim3(blocks), dim3(threads), all, shared, stream), what);
}

/// Loads a kernel, which CUDA does otherwise at its first launch.
template <class... Given>
void load(void (*kernel)(Given...)) {
  cudaFuncAttributes facts;
  require_success(cudaFuncGetAttributes(&facts, reinterpret_cast<void const*>(kernel)), "a kernel");
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
      sizeof(Program) + sizeof(index_t) <= kernel_argument_bytes,
      "attune: the parameters and tables of this operator do not fit into the 32,764 bytes of a CUDA kernel's "
      "arguments: policies hold at most some 120 of them; compute what is constant beforehand");
  static bool const checked = require_same_layout(&program_kernel<Program>, sizeof(Program));
  static_cast<void>(checked);
  if (tasks <= 0) return;
  auto const blocks = static_cast<unsigned>((tasks + threads_of_block - 1) / threads_of_block);
  launch("the launch of a program", program_kernel<Program>, blocks, threads_of_block, 0, stream, program, tasks);
}

}  // namespace attune::detail

#endif
