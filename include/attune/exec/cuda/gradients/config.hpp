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
  static constexpr int d_out = forward::bytes, bytes = d_out + forward::query_bytes;
};

/// A tile of keys: keys and values stay; queries, cotangents and records of `bn` rows are streamed through two slots.
template <class Op, class E, class C>
struct key_tile_memory {
  static constexpr int products = tile_facts<Op>::products, row = 2 * C::width, planes = tile_format<E>::planes;
  /// Planes of gradient_products: rows that stay are its queries, and streamed rows its keys.
  struct transposed {
    static constexpr int query_plane = C::rows * row, key_plane = C::bn * row;
  };
  static constexpr int key_bytes = planes * transposed::query_plane, row_bytes = planes * transposed::key_plane;
  static constexpr int record_plane = C::bn * 16, chunks = pair_record<Op>::chunks,
                       record_bytes = (chunks * record_plane + 511) / 512 * 512;  // a warp copies 512 bytes
  ATTUNE_HD static constexpr int key(int k) { return k * key_bytes; }
  static constexpr int value = products * key_bytes;
  ATTUNE_HD static constexpr int query(int k, int slot) { return value + key_bytes + (2 * k + slot) * row_bytes; }
  ATTUNE_HD static constexpr int d_out(int slot) { return query(products, slot); }
  ATTUNE_HD static constexpr int record(int slot) { return d_out(2) + slot * record_bytes; }
  /// The factors of split rows, 4 to a chunk.
  static constexpr int factor_chunks = tile_format<E>::split ? (products + 1) * C::bn / 4 : 0,
                       factor_bytes = (factor_chunks + 31) / 32 * 512;
  static_assert(factor_chunks <= C::threads);
  ATTUNE_HD static constexpr int query_factors(int k, int slot) {
    return record(2) + slot * factor_bytes + k * C::bn * int(sizeof(float));
  }
  ATTUNE_HD static constexpr int d_out_factors(int slot) { return query_factors(products, slot); }
  static constexpr int bytes = value + key_bytes + (products + 1) * 2 * row_bytes + 2 * record_bytes + 2 * factor_bytes;
};

/// The extents for an operator and a width: as many warps as shared memory has room for, at most 8. Sums take Width / 2
/// registers each. Where they would take more than 192 (128 of floats, whose products need more), or where fewer than
/// four warps fit, warps share rows: each computes the scores, and has a part of the features. With 256 features and 16
/// bits, tiles of keys compute 6 products for 4 of one product, and 9 for 6 of two.
template <class Op, class E, int Width>
struct large_gradient_configs {
  static_assert(Width <= 256, "attune: cuda: gradients of tiles have at most 256 features: use thrust_on");
  static constexpr int products = tile_facts<Op>::products;
  static constexpr bool split = tile_format<E>::split;
  static constexpr int most = 160 * 1024;  // an sm_80 has 163 KiB
  static constexpr int parts_for(int sums) {
    int parts = 1;
    while (parts < Width / 64 && sums * Width / 2 / parts > (split ? 128 : 192)) parts *= 2;
    return parts;
  }
  /// Streamed rows or keys. Scores and their gradients take registers too.
  static constexpr int streamed_for(int sums) {
    int const registers = sums * Width / 2 / parts_for(sums);
    if (split) return Width > 128 || (Width > 64 && (products > 1 || registers > 64)) ? 16 : 32;
    return products > 1 ? (registers > 128 || Width > 128 ? 16 : 32) : Width > 128 ? 32 : 64;
  }
  /// Groups: of warps that share rows.
  template <bool Keys, int Groups>
  static constexpr auto fitting() {
    constexpr int sums = products + (Keys ? 1 : 0), few = Groups < 4 ? 4 / Groups : 1, widest = Width / 64;
    constexpr int wanted = parts_for(sums) > few ? parts_for(sums) : few, parts = wanted < widest ? wanted : widest;
    using C = tile_config<Width, streamed_for(sums), 1, Groups * parts, parts>;
    constexpr int bytes = [] {
      if constexpr (Keys)
        return key_tile_memory<Op, E, C>::bytes;
      else
        return query_tile_memory<Op, E, C>::bytes;
    }();
    if constexpr (Groups == 1 || (bytes <= most && C::warps <= 8))
      return C{};
    else
      return fitting<Keys, Groups / 2>();
  }
  using queries = decltype(fitting<false, 8>());  ///< of tiles of queries, which stream keys
  using keys = decltype(fitting<true, 8>());      ///< of tiles of keys, which stream rows
};

/// The memory of blocks, by their extents.
template <class Op, class E>
struct query_gradient_memory {
  template <class C>
  using of = query_tile_memory<Op, E, C>;
};
template <class Op, class E>
struct key_gradient_memory {
  template <class C>
  using of = key_tile_memory<Op, E, C>;
};
/// The extents in at most Memory bytes, if that is possible: see config_of.
template <class Op, class E, int Width, int Memory = large_memory>
struct gradient_configs {
  using large = large_gradient_configs<Op, E, Width>;
  using queries = typename fitted_config<query_gradient_memory<Op, E>, typename large::queries, Memory>::type;
  using keys = typename fitted_config<key_gradient_memory<Op, E>, typename large::keys, Memory>::type;
};
/// Throws attune::error if the tiles take more than the `has` bytes that a block of the device may have.
template <class Op, class E, class Queries, class Keys>
void require_gradient_memory(int has) {
  using smaller = gradient_configs<Op, E, Keys::width, small_memory>;
  constexpr auto bytes = []<class Q, class K>(Q, K) {
    constexpr int of_queries = query_gradient_memory<Op, E>::template of<Q>::bytes,
                  of_keys = key_gradient_memory<Op, E>::template of<K>::bytes;
    return of_queries > of_keys ? of_queries : of_keys;
  };
  require_shared_memory("vjp", has, bytes(Queries{}, Keys{}),
                        bytes(typename smaller::queries{}, typename smaller::keys{}), Keys::width,
                        tile_facts<Op>::products);
}

/// The extents of a tile of keys for copies of what it streams.
template <class C>
struct streamed_config {
  static constexpr int width = C::width, bn = C::bn, mi = C::mi, warps = C::warps, rows = C::bn, threads = C::threads;
};

/// The extents of a tile of keys for the rows that a warp absorbs at once: it streams as many as memory has room for,
/// and nvcc 13.0 spills where sums and scores take more than 176 registers.
template <class Op, class C>
struct absorbed_config : C {
  static constexpr int sums = tile_facts<Op>::products + 1;
  static constexpr int rows_for(int n) {
    return n > 16 && sums * (C::width / C::parts + n) / 2 > 176 ? rows_for(n / 2) : n;
  }
  static constexpr int bn = rows_for(C::bn);
};

}  // namespace attune::exec_cuda
