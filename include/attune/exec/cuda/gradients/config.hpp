// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The extents of the tiles of gradients and their layouts in shared memory.
#pragma once

#include <attune/exec/cuda/gradients/call.hpp>
#include <attune/exec/cuda/tile/config.hpp>

namespace attune::exec_cuda {

/// A tile of queries: the forward pass's memory of rows, keys and values, and the cotangents of the rows.
template <class Op, class E, class C>
struct query_tile_memory {
  using forward = tile_memory<Op, E, C>;
  static constexpr int d_out = forward::bytes, bytes = d_out + forward::query_plane;
};

/// A tile of keys: keys and values stay; queries, cotangents and records of `bn` rows are streamed through two slots.
template <class Op, class C>
struct key_tile_memory {
  static constexpr int products = tile_facts<Op>::products, row = 2 * C::width;
  static constexpr int key_plane = C::rows * row, row_plane = C::bn * row;
  static constexpr int record_plane = C::bn * 16, chunks = pair_record<Op>::chunks,
                       record_bytes = (chunks * record_plane + 511) / 512 * 512;  // a warp copies 512 bytes
  ATTUNE_HD static constexpr int key(int k) { return k * key_plane; }
  static constexpr int value = products * key_plane;
  ATTUNE_HD static constexpr int query(int k, int slot) { return value + key_plane + (2 * k + slot) * row_plane; }
  ATTUNE_HD static constexpr int d_out(int slot) { return query(products, slot); }
  ATTUNE_HD static constexpr int record(int slot) { return d_out(2) + slot * record_bytes; }
  static constexpr int bytes = value + key_plane + (products + 1) * 2 * row_plane + 2 * record_bytes;
};

/// The memory of blocks, by their extents.
template <class Op, class E>
struct query_gradient_memory {
  template <class C>
  using of = query_tile_memory<Op, E, C>;
};
template <class Op>
struct key_gradient_memory {
  template <class C>
  using of = key_tile_memory<Op, C>;
};

/// The features of the widest tiles of gradients.
inline constexpr int widest_gradients = 256;

/// The extents for an operator and a width: as many rows and warps as fit into Memory bytes. Sums take Width / 2
/// registers each. Where they would take more than 192, two warps share rows: both compute the scores, and each has
/// half of the features. With 256 features, tiles of keys compute 6 products for 4 of one product, and 9 for 6 of two.
template <class Op, class E, int Width, int Memory = large_memory>
struct gradient_configs {
  static_assert(Width <= widest_gradients, "attune: cuda: gradients of tiles have at most 256 features: use thrust_on");
  static constexpr int products = tile_facts<Op>::products;
  static constexpr int parts_for(int sums) { return sums * Width / 2 > 192 ? 2 : 1; }
  /// Streamed rows or keys. Scores and their gradients take registers too: scripts/mma_loops counts what is spilled.
  static constexpr int streamed_for(int sums) {
    int const registers = sums * Width / 2 / parts_for(sums);
    if (products > 1) return registers > 128 || Width > 128 ? 16 : 32;
    return registers >= 128 || Width > 128 ? 32 : 64;
  }
  template <class In, int Sums>
  using fitted =
      typename fitted_config<In, tile_config<Width, streamed_for(Sums), 1, 8, parts_for(Sums)>, Memory>::type;
  /// Of tiles of queries, which stream keys.
  using queries = fitted<query_gradient_memory<Op, E>, products>;
  /// Of tiles of keys, which stream rows.
  using keys = fitted<key_gradient_memory<Op>, products + 1>;
};
/// Throws attune::error if the tiles take more than the `has` bytes that a block of the device may have.
template <class Op, class E, class Queries, class Keys>
void require_gradient_memory(int has) {
  constexpr auto most = [](int a, int b) { return a > b ? a : b; };
  using small = gradient_configs<Op, E, Keys::width, small_memory>;
  require_shared_memory(
      "vjp", has, most(query_tile_memory<Op, E, Queries>::bytes, key_tile_memory<Op, Keys>::bytes),
      most(query_tile_memory<Op, E, typename small::queries>::bytes, key_tile_memory<Op, typename small::keys>::bytes),
      Keys::width, tile_facts<Op>::products);
}

/// The extents of a tile of keys for copies of what it streams.
template <class C>
struct streamed_config {
  static constexpr int width = C::width, bn = C::bn, mi = C::mi, warps = C::warps, rows = C::bn, threads = C::threads;
};

}  // namespace attune::exec_cuda
