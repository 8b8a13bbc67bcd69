// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The tiles of gradients as kernels, for nvcc. A block is one tile.
#pragma once

#include <attune/exec/cuda/gradients/key_tile.hpp>
#include <attune/exec/cuda/gradients/query_tile.hpp>
#include <attune/exec/cuda/warp/device.cuh>

namespace attune::exec_cuda {

/// Blocks: B x groups x tiles of rows; dynamic shared memory: query_gradient_tile::shared_bytes.
template <class Op, class E, class C>
__global__ void __launch_bounds__(C::threads)
    query_gradient_kernel(gradient_call<Op, E> const __grid_constant__ call) {
  extern __shared__ __align__(128) unsigned char raw[];
  int const tiles = call.forward.row_tiles;
  index_t const n = index_t(blockIdx.x), pair = n / tiles;
  block_place const at{int(pair / call.forward.groups), int(pair % call.forward.groups), tiles - 1 - int(n % tiles)};
  query_gradient_tile<device_warp, Op, E, C> tile(call, std::uint32_t(__cvta_generic_to_shared(raw)),
                                                  int(threadIdx.x >> 5), at);
  tile.run();
}
/// Blocks: B x groups x tiles of keys; dynamic shared memory: key_gradient_tile::shared_bytes.
template <class Op, class E, class C>
__global__ void __launch_bounds__(C::threads)
    key_gradient_kernel(gradient_call<Op, E> const __grid_constant__ call) {
  extern __shared__ __align__(128) unsigned char raw[];
  index_t const n = index_t(blockIdx.x), pair = n / call.key_tiles;
  block_place const at{int(pair / call.forward.groups), int(pair % call.forward.groups), int(n % call.key_tiles)};
  key_gradient_tile<device_warp, Op, E, C> tile(call, std::uint32_t(__cvta_generic_to_shared(raw)),
                                                int(threadIdx.x >> 5), at);
  tile.run();
}

}  // namespace attune::exec_cuda
