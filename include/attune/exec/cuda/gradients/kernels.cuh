// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The tiles of gradients as kernels, for nvcc. A block is one tile.
#pragma once

#include <attune/exec/cuda/gradients/key_tile.hpp>
#include <attune/exec/cuda/gradients/query_tile.hpp>
#include <attune/exec/cuda/warp/device.cuh>

namespace attune::exec_cuda {

/// Blocks: query_blocks(); dynamic shared memory: query_gradient_tile::shared_bytes.
template <class Op, class E, class C, bool Members>
__global__ void __launch_bounds__(C::threads)
    query_gradient_kernel(gradient_call<Op, E> const __grid_constant__ call) {
  extern __shared__ __align__(128) unsigned char raw[];
  for (int s = 0; s < call.shared_batches * call.shared_groups; ++s) {
    if (s != 0) __syncthreads();  // no warp reads the memory of the tile before
    query_gradient_tile<device_warp, Op, E, C, Members> tile(call, std::uint32_t(__cvta_generic_to_shared(raw)),
                                                             int(threadIdx.x >> 5), call.query_block(blockIdx.x, s));
    tile.run();
  }
}
/// Blocks: key_blocks(); dynamic shared memory: key_gradient_tile::shared_bytes.
template <class Op, class E, class C>
__global__ void __launch_bounds__(C::threads)
    key_gradient_kernel(gradient_call<Op, E> const __grid_constant__ call) {
  extern __shared__ __align__(128) unsigned char raw[];
  key_gradient_tile<device_warp, Op, E, C> tile(call, std::uint32_t(__cvta_generic_to_shared(raw)),
                                                int(threadIdx.x >> 5), call.key_block(blockIdx.x));
  tile.run();
}

}  // namespace attune::exec_cuda
