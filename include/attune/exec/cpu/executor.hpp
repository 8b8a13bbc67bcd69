// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   cpu{}      cpu{threads}      cpu<double>{threads}
#pragma once

#include <type_traits>

#include <xsimd/xsimd.hpp>

#include <attune/core/storage.hpp>

namespace attune {

/// Fused, tiled, multithreaded execution with SIMD. T is the type of the tensors and, if float or double, of the arithmetic;
/// cpu<bfloat16> and cpu<float16> read and write 16 bits and compute in float (forward only). Arch is the
/// instruction set: a template parameter of everything that touches SIMD, so that translation units built for different
/// instruction sets never share a symbol.
/// Determinism: results are bitwise the same for any number of threads.
/// Memory: scratch of a few hundred KiB per thread, independent of Lq and Lk; with a candidate set Lk logits per row of one tile.
template <class T = float, class Arch = xsimd::default_arch>
struct cpu {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double> || storage_only<T>,
                "attune: cpu<T> computes in float or double; T may also be attune::bfloat16 or attune::float16, stored only");
  using value_type = T;
  using arch = Arch;
  using view = tensor<T const>;

  int threads = 0;  ///< 0: one per hardware thread

  constexpr cpu() = default;
  constexpr explicit cpu(int thread_count) : threads(thread_count) {}
};

}  // namespace attune
