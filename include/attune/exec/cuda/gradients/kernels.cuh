// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The tiles of gradients as kernels, for nvcc. A block is one tile.
#pragma once

#include <attune/exec/cuda/gradients/key_tile.hpp>
#include <attune/exec/cuda/gradients/query_tile.hpp>
#include <attune/exec/cuda/warp/device.cuh>

namespace attune::exec_cuda {

/// Tiles of queries of block n: one, or all that add to the same numbers of pairs.
template <class Op, class E, class C, bool Members>
ATTUNE_LANE void run_query_tiles(gradient_call<Op, E> const& call, std::uint32_t shared, index_t n) {
  for (int s = 0; s < call.shared_batches * call.shared_groups; ++s) {
    if (s != 0) __syncthreads();  // no warp reads the memory of the tile before
    query_gradient_tile<device_warp, Op, E, C, Members>(call, shared, int(threadIdx.x >> 5), call.query_block(n, s))
        .run();
  }
}
/// Tile n of keys.
template <class Op, class E, class C>
ATTUNE_LANE void run_key_tile(gradient_call<Op, E> const& call, std::uint32_t shared, index_t n) {
  key_gradient_tile<device_warp, Op, E, C>(call, shared, int(threadIdx.x >> 5), call.key_block(n)).run();
}
/// Whether one launch runs both kinds of tiles: their blocks have as many threads. A multiprocessor has room for as many
/// blocks of either kind, by registers and by shared memory, as for the larger kind alone.
template <class Queries, class Keys>
inline constexpr bool one_launch = Queries::threads == Keys::threads;

/// Blocks: `of_keys` of key_blocks(), then query_blocks(). Tiles of keys take longer, so they come first. Dynamic shared
/// memory: the larger shared_bytes of the two.
template <class Op, class E, class Queries, class Keys, bool Members>
__global__ void __launch_bounds__(Keys::threads)
    gradient_kernel(gradient_call<Op, E> const __grid_constant__ call, unsigned of_keys) {
  static_assert(one_launch<Queries, Keys>);
  extern __shared__ __align__(128) unsigned char raw[];
  auto const shared = std::uint32_t(__cvta_generic_to_shared(raw));
  if (blockIdx.x < of_keys)
    run_key_tile<Op, E, Keys>(call, shared, blockIdx.x);
  else
    run_query_tiles<Op, E, Queries, Members>(call, shared, blockIdx.x - of_keys);
}
/// Tiles of queries alone: query_blocks().
template <class Op, class E, class C, bool Members>
__global__ void __launch_bounds__(C::threads)
    query_gradient_kernel(gradient_call<Op, E> const __grid_constant__ call) {
  extern __shared__ __align__(128) unsigned char raw[];
  run_query_tiles<Op, E, C, Members>(call, std::uint32_t(__cvta_generic_to_shared(raw)), blockIdx.x);
}
/// Tiles of keys alone: key_blocks().
template <class Op, class E, class C>
__global__ void __launch_bounds__(C::threads)
    key_gradient_kernel(gradient_call<Op, E> const __grid_constant__ call) {
  extern __shared__ __align__(128) unsigned char raw[];
  run_key_tile<Op, E, C>(call, std::uint32_t(__cvta_generic_to_shared(raw)), blockIdx.x);
}

}  // namespace attune::exec_cuda
