// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The tiles of gradients as kernels, for nvcc. A block is one tile.
#pragma once

#include <attune/exec/cuda/gradients/key_tile.hpp>
#include <attune/exec/cuda/gradients/query_tile.hpp>
#include <attune/exec/cuda/warp/device.cuh>

namespace attune::exec_cuda {

/// Tile n of queries of a call. The last tile of a group is the first: with a causal mask it sees most keys.
template <class Op, class E, class C>
ATTUNE_LANE void run_query_tile(gradient_call<Op, E> const& call, std::uint32_t shared, index_t n) {
  int const tiles = call.forward.row_tiles;
  index_t const pair = n / tiles;
  block_place const at{int(pair / call.forward.groups), int(pair % call.forward.groups), tiles - 1 - int(n % tiles)};
  query_gradient_tile<device_warp, Op, E, C>(call, shared, int(threadIdx.x >> 5), at).run();
}
/// Tile n of keys of a call. With a causal mask, most queries see the first tile of a group.
template <class Op, class E, class C>
ATTUNE_LANE void run_key_tile(gradient_call<Op, E> const& call, std::uint32_t shared, index_t n) {
  index_t const pair = n / call.key_tiles;
  block_place const at{int(pair / call.forward.groups), int(pair % call.forward.groups), int(n % call.key_tiles)};
  key_gradient_tile<device_warp, Op, E, C>(call, shared, int(threadIdx.x >> 5), at).run();
}
/// Whether one launch runs both kinds of tiles: their blocks have as many threads. Each kind takes more than half of the
/// registers or of the shared memory of a multiprocessor, or both kinds less, so neither makes room for the other.
template <class Queries, class Keys>
inline constexpr bool one_launch = Queries::threads == Keys::threads;

/// Blocks: `of_keys`, B x groups x tiles of keys, then B x groups x tiles of queries. Tiles of keys take longer: they
/// come first. Dynamic shared memory: the larger shared_bytes of the two.
template <class Op, class E, class Queries, class Keys>
__global__ void __launch_bounds__(Keys::threads)
    gradient_kernel(gradient_call<Op, E> const __grid_constant__ call, unsigned of_keys) {
  static_assert(one_launch<Queries, Keys>);
  extern __shared__ __align__(128) unsigned char raw[];
  auto const shared = std::uint32_t(__cvta_generic_to_shared(raw));
  if (blockIdx.x < of_keys)
    run_key_tile<Op, E, Keys>(call, shared, blockIdx.x);
  else
    run_query_tile<Op, E, Queries>(call, shared, blockIdx.x - of_keys);
}
/// Tiles of queries alone.
template <class Op, class E, class C>
__global__ void __launch_bounds__(C::threads)
    query_gradient_kernel(gradient_call<Op, E> const __grid_constant__ call) {
  extern __shared__ __align__(128) unsigned char raw[];
  run_query_tile<Op, E, C>(call, std::uint32_t(__cvta_generic_to_shared(raw)), blockIdx.x);
}
/// Tiles of keys alone.
template <class Op, class E, class C>
__global__ void __launch_bounds__(C::threads)
    key_gradient_kernel(gradient_call<Op, E> const __grid_constant__ call) {
  extern __shared__ __align__(128) unsigned char raw[];
  run_key_tile<Op, E, C>(call, std::uint32_t(__cvta_generic_to_shared(raw)), blockIdx.x);
}

}  // namespace attune::exec_cuda
