// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   contract:    S^T[key][query]  = sum_d K[key][d] Q^T[d][query]
//   accumulate:  O^T[dv][query]  += sum_key V[key][dv] P^T[key][query]
//
// One register-blocked product serves both. Lanes are queries. K and V are read in place as scalars, and only queries
// are packed. There is no horizontal operation. Nothing here knows a policy.
#pragma once

#include <type_traits>

#include <attune/config.hpp>
#include <attune/core/simd_math.hpp>
#include <attune/exec/cpu/products/tiling.hpp>

namespace attune::exec_cpu {

/// Keeps a batch in a register. Otherwise g++ 12 folds the load into the memory operand of every FMA that uses it, and
/// the loop becomes load-bound (97 -> 64 GFLOP/s measured on AVX2; with -mtune=znver2 or znver3, which -march=native
/// implies there).
template <class B>
ATTUNE_INLINE void keep(B& x) {
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
  auto data = x.data;  // a local copy: g++ would keep an array element in memory from here on if an asm named it
  if constexpr (sizeof data == 64)
    asm("" : "+v"(data));
  else if constexpr (sizeof data <= 32)
    asm("" : "+x"(data));
  x.data = data;
#else
  (void)x;
#endif
}

/// Adds the product of a key's scalar x and a batch of queries b, for one feature of a contraction.
struct product_step {
  static constexpr int numbers = 1;  ///< in an element of the operands
  template <class B>
  ATTUNE_INLINE B operator()(B const& x, B const& b, B const& acc, index_t) const {
    return simd::multiply_add(x, b, acc);
  }
};

/// Whether a step reads lane 0 of x alone. That saves the instruction that copies it to the others.
template <class Step>
inline constexpr bool by_first_lane = false;

/// Whether a step replaces the loop of `multiply` by its own, Step::multiply, which has the same arguments but the last
/// (bf16/bfmmla.hpp).
template <class Step>
inline constexpr bool multiplies_blocks = false;

/// The distance of contiguous elements, known when the code is compiled.
using contiguous = std::integral_constant<index_t, 1>;

/// The number at `from` in all lanes that Step reads.
template <class Step, class B>
ATTUNE_INLINE B step_operand(typename B::value_type const* from) {
#if XSIMD_WITH_NEON64
  if constexpr (by_first_lane<Step>)
    return decltype(B::data){*from};
  else
#endif
    return B(*from);
}

/// acc[r][v] = step(a[r * row_step + k * k_step], b[k][v], acc[r][v], k) for all k; for a product, += sum_k a b. E is
/// the type of a and b, as large as T.
template <class T, class Arch, int Rows, int Vectors, class Step = product_step, class E = T>
ATTUNE_INLINE void multiply(xsimd::batch<T, Arch> (&acc)[Rows][Vectors], E const* ATTUNE_RESTRICT a, index_t row_step,
                            index_t k_step, E const* ATTUNE_RESTRICT b, index_t n, Step const& step = {}) {
  using batch = xsimd::batch<E, Arch>;
  constexpr int lanes = int(batch::size);
  for (index_t k = 0; k < n; ++k) {
    batch bk[Vectors];
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      bk[v] = batch::load_aligned(b + v * lanes);
      keep(bk[v]);
    }
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      batch x = step_operand<Step, batch>(a + r * row_step);
      keep(x);
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) acc[r][v] = step(x, bk[v], acc[r][v], k);
    }
    a += k_step;
    b += Vectors * lanes;
  }
}

/// The same by a step that multiplies blocks. One of the distances is `contiguous`.
template <class T, class Arch, int Rows, int Vectors, class Step, class E, class RowStep, class KStep>
  requires(multiplies_blocks<Step>)
ATTUNE_INLINE void multiply(xsimd::batch<T, Arch> (&acc)[Rows][Vectors], E const* ATTUNE_RESTRICT a, RowStep row_step,
                            KStep k_step, E const* ATTUNE_RESTRICT b, index_t n, Step const&) {
  Step::multiply(acc, a, row_step, k_step, b, n);
}

/// Zeros in registers. If the loop were not unrolled, g++ -O2 would put the sums into memory first.
template <class B, int Rows, int Vectors>
ATTUNE_INLINE void clear(B (&acc)[Rows][Vectors]) {
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) acc[r][v] = B(typename B::value_type(0));
}

/// Calls part(rows, first, last) with std::integral_constant<int, rows> for stretches of [0, n). `rows` is the number
/// of rows that share the registers: `Most`, then 4, then 1. If Most is 6, one block of 6 is given up where two blocks
/// of 4 then cover it and two of the remaining rows.
template <int Most, class Part>
ATTUNE_INLINE void in_register_blocks(index_t n, Part const& part) {
  static_assert(Most == 6 || Most % 4 == 0);
  index_t most = n / Most * Most;
  if constexpr (Most % 4 != 0)
    if (most > 0 && (n - most) % 4 > (n - most + Most) % 4) most -= Most;
  index_t const fours = most + (n - most) / 4 * 4;
  if (most > 0) part(std::integral_constant<int, Most>{}, index_t(0), most);
  if (most < fours) part(std::integral_constant<int, 4>{}, most, fours);
  if (fours < n) part(std::integral_constant<int, 1>{}, fours, n);
}

template <class T, class Arch, int Rows, class Step, class E>
ATTUNE_NOINLINE void contract_rows(T* ATTUNE_RESTRICT out, E const* keys, index_t key_step, E const* queries,
                                   index_t width, index_t j, index_t last, Step const& step) {
  using tile = tiling<T, Arch>;
  for (; j < last; j += Rows) {
    typename tile::batch acc[Rows][tile::vectors];
    clear(acc);
    multiply<T, Arch, Rows, tile::vectors>(acc, keys + j * key_step, key_step, contiguous{}, queries, width, step);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < tile::vectors; ++v)
        acc[r][v].store_aligned(out + ((j + r) * tile::vectors + v) * tile::lanes);
  }
}

/// out[j][query] = <keys_j, query> for n keys, or another sum over features, defined by `step`. queries: packed,
/// [width][tile::queries].
template <class T, class Arch, class Step = product_step, class E = T>
void contract(T* out, E const* keys, index_t key_step, E const* queries, index_t width, index_t n,
              Step const& step = {}) {
  in_register_blocks<tiling<T, Arch>::rows>(n, [&](auto rows, index_t first, index_t last) {
    contract_rows<T, Arch, rows()>(out, keys, key_step, queries, width, first, last, step);
  });
}

template <class T, class Arch, int Rows, class Step, class E>
ATTUNE_NOINLINE void accumulate_rows(T* ATTUNE_RESTRICT out, E const* values, index_t key_step, E const* weights,
                                     index_t n, index_t d, index_t last, Step const& step) {
  using tile = tiling<T, Arch>;
  using batch = typename tile::batch;
  for (; d < last; d += Rows) {
    batch acc[Rows][tile::vectors];
    clear(acc);
    multiply<T, Arch, Rows, tile::vectors>(acc, values + d, contiguous{}, key_step, weights, n, step);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < tile::vectors; ++v) {  // a block sums from zero: error grows with the block, not with Lk
        T* const at = out + ((d + r) * tile::vectors + v) * tile::lanes;
        (batch::load_aligned(at) + acc[r][v]).store_aligned(at);
      }
  }
}

/// out[dv][query] += sum over n keys of values_key[dv] * weights[key][query].
template <class T, class Arch, class Step = product_step, class E = T>
void accumulate(T* out, E const* values, index_t key_step, E const* weights, index_t n, index_t width,
                Step const& step = {}) {
  in_register_blocks<tiling<T, Arch>::rows>(width, [&](auto rows, index_t first, index_t last) {
    accumulate_rows<T, Arch, rows()>(out, values, key_step, weights, n, first, last, step);
  });
}

}  // namespace attune::exec_cpu
