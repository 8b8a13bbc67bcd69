// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   C[rows][vectors * W] += a(row, k) * B[k][vectors * W]        all of C, one row of B and one a in registers
//
// The shape of the micro-kernel follows from the number of registers. Everything else of the engine follows from it.
#pragma once

#include <attune/core/storage.hpp>
#include <attune/core/xsimd.hpp>

namespace attune::exec_cpu {

template <class Arch>
inline constexpr int registers =
#if XSIMD_WITH_NEON64
    std::is_base_of_v<xsimd::neon64, Arch> ? 32 :
#endif
                                           (xsimd::batch<float, Arch>::size * sizeof(float) >= 64 ? 32 : 16);

/// Block sizes of the forward pass, measured (docs/lab/performance.md).
template <class T, class Arch>
struct tiling {
  static_assert(!storage_only<T>,
                "attune: cpu<bfloat16> and cpu<float16> offer forward(); everything else wants cpu<float>");
  using batch = xsimd::batch<T, Arch>;
  static constexpr int lanes = int(batch::size);
  static constexpr int vectors = 2;                           ///< batches of queries in a tile
  static constexpr int rows = registers<Arch> == 32 ? 8 : 6;  ///< keys, or value features, at a time
  static constexpr int queries = vectors * lanes;             ///< query rows of a tile
  static constexpr index_t key_block = 64;                    ///< keys between two updates of the running reference
  static constexpr index_t tiles = 4;                         ///< tiles that share a block of keys while it is in cache
};

}  // namespace attune::exec_cpu
