// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   [s00 s01]    [row 0: pairs c, c + 1]   [column 0: pairs c, c + 1]^T
//   [s10 s11] += [row 1: pairs c, c + 1] . [column 1: pairs c, c + 1]
//
// Products of pairs of bf16 numbers by BFMMLA of ARM: twice the products of BFDOT in an instruction, with the same
// bits. Operands keep the layout that BFDOT reads, and the loop zips them into blocks of two by two. For 8 rows, 8
// columns and 4 pairs it has 32 BFMMLAs, 16 loads and 16 zips. The sums leave their blocks once, after the loop. BFDOT
// multiplies the pairs that do not fill four, and the rows that do not fill four.
#pragma once

#include <type_traits>

#include <attune/exec/cpu/products/bfdot.hpp>
#include <attune/exec/cpu/products/microkernel.hpp>
#include <attune/exec/cpu/products/pairs.hpp>

namespace attune::exec_cpu {

namespace detail {

/// Numbers of two batches of four: x0 y0 x1 y1, then x2 y2 x3 y3. (xsimd 8.1 takes three instructions for either.)
template <class B>
ATTUNE_INLINE B zip_lower(B const& x, B const& y) {
  return __builtin_shufflevector(x.data, y.data, 0, 4, 1, 5);
}
template <class B>
ATTUNE_INLINE B zip_upper(B const& x, B const& y) {
  return __builtin_shufflevector(x.data, y.data, 2, 6, 3, 7);
}
/// Halves of two batches of four: x0 x1 y0 y1, then x2 x3 y2 y3.
template <class B>
ATTUNE_INLINE B lower_halves(B const& x, B const& y) {
  return __builtin_shufflevector(x.data, y.data, 0, 1, 4, 5);
}
template <class B>
ATTUNE_INLINE B upper_halves(B const& x, B const& y) {
  return __builtin_shufflevector(x.data, y.data, 2, 3, 6, 7);
}

/// blocks[i] = two pairs of the rows (or columns) 2 i and 2 i + 1, where the rows of a pair are contiguous.
template <class Arch, int Blocks>
ATTUNE_INLINE void blocks_across(xsimd::batch<number_pair, Arch> (&blocks)[Blocks], number_pair const* first,
                                 number_pair const* second) {
  using pairs = xsimd::batch<number_pair, Arch>;
#pragma GCC unroll 8
  for (int i = 0; i < Blocks; i += 2) {
    auto const x = pairs::load_unaligned(first + 2 * i), y = pairs::load_unaligned(second + 2 * i);
    blocks[i] = zip_lower(x, y), blocks[i + 1] = zip_upper(x, y);
  }
}
/// The same for four pairs, two in each argument, where the pairs of a row are contiguous.
template <class Arch, int Blocks>
ATTUNE_INLINE void blocks_along(xsimd::batch<number_pair, Arch> (&blocks)[Blocks],
                                xsimd::batch<number_pair, Arch> (&next)[Blocks], number_pair const* rows,
                                index_t row_step) {
  using pairs = xsimd::batch<number_pair, Arch>;
#pragma GCC unroll 8
  for (int i = 0; i < Blocks; ++i) {
    auto const x = pairs::load_unaligned(rows + 2 * i * row_step),
               y = pairs::load_unaligned(rows + (2 * i + 1) * row_step);
    blocks[i] = lower_halves(x, y), next[i] = upper_halves(x, y);
  }
}

}  // namespace detail

/// The step of `bf16_instructions` on ARM: `multiply` runs BFMMLA.
struct block_step {
  static constexpr int numbers = 2;       ///< in an element of the operands
  static constexpr index_t together = 4;  ///< pairs in a step of the loop
  using pair = pair_step<bf16_instructions>;

  template <class Arch, int Rows, int Vectors, class RowStep, class KStep>
  static ATTUNE_INLINE void multiply(xsimd::batch<float, Arch> (&acc)[Rows][Vectors], number_pair const* a,
                                     RowStep row_step, KStep k_step, number_pair const* b, index_t n) {
    constexpr index_t columns = Vectors * int(xsimd::batch<float, Arch>::size);
    if constexpr (Rows % 4 == 0) {
      xsimd::batch<float, Arch> sums[Rows / 2][columns / 2];
      into_blocks(sums, acc);
      for (; n >= together; n -= together, a += together * k_step, b += together * columns) {
        // Two pairs, then the next two.
        xsimd::batch<number_pair, Arch> x[Rows / 2], next[Rows / 2], y[columns / 2];
        detail::blocks_across(y, b, b + columns);
        if constexpr (std::is_same_v<KStep, contiguous>)
          detail::blocks_along(x, next, a, row_step);
        else
          detail::blocks_across(x, a, a + k_step);
        add_blocks(sums, x, y);
        asm volatile("" : : : "memory");  // g++ would load the operands of all four pairs first, and spill
        detail::blocks_across(y, b + 2 * columns, b + 3 * columns);
        if constexpr (!std::is_same_v<KStep, contiguous>) detail::blocks_across(next, a + 2 * k_step, a + 3 * k_step);
        add_blocks(sums, next, y);
      }
      out_of_blocks(acc, sums);
    }
    exec_cpu::multiply<float, Arch, Rows, Vectors>(acc, a, row_step, k_step, b, n, pair{});
  }

 private:
  template <class Arch, int Rows, int Columns>
  static ATTUNE_INLINE void add_blocks(xsimd::batch<float, Arch> (&sums)[Rows][Columns],
                                       xsimd::batch<number_pair, Arch> const (&x)[Rows],
                                       xsimd::batch<number_pair, Arch> const (&y)[Columns]) {
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
      for (int c = 0; c < Columns; ++c) sums[r][c] = bfmmla(sums[r][c], x[r], y[c]);
  }
  /// Sums of rows 2 r and 2 r + 1 to blocks of two columns, and back.
  template <class Arch, int Rows, int Vectors, int Blocks, int Columns>
  static ATTUNE_INLINE void into_blocks(xsimd::batch<float, Arch> (&sums)[Blocks][Columns],
                                        xsimd::batch<float, Arch> const (&acc)[Rows][Vectors]) {
#pragma GCC unroll 8
    for (int r = 0; r < Blocks; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) {
        sums[r][2 * v] = detail::lower_halves(acc[2 * r][v], acc[2 * r + 1][v]);
        sums[r][2 * v + 1] = detail::upper_halves(acc[2 * r][v], acc[2 * r + 1][v]);
      }
  }
  template <class Arch, int Rows, int Vectors, int Blocks, int Columns>
  static ATTUNE_INLINE void out_of_blocks(xsimd::batch<float, Arch> (&acc)[Rows][Vectors],
                                          xsimd::batch<float, Arch> const (&sums)[Blocks][Columns]) {
#pragma GCC unroll 8
    for (int r = 0; r < Blocks; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) {
        acc[2 * r][v] = detail::lower_halves(sums[r][2 * v], sums[r][2 * v + 1]);
        acc[2 * r + 1][v] = detail::upper_halves(sums[r][2 * v], sums[r][2 * v + 1]);
      }
  }
};
template <>
inline constexpr bool multiplies_blocks<block_step> = true;

}  // namespace attune::exec_cpu
