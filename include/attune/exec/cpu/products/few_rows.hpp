// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   contract_features:    S[row][key]    = sum_d K[key][d] Q[row][d]
//   accumulate_features:  O[row][dv]    += sum_key P[row][key] V[key][dv]
//
// The products of few rows with many keys. Lanes are features. A vector of K or V is loaded once, in place, for several
// rows. One horizontal sum per pair is cheap compared with a read from memory. 16-bit keys and values become floats
// when they are loaded into a register. Nothing here knows a policy.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include <attune/exec/cpu/products/lanes.hpp>
#include <attune/exec/cpu/products/microkernel.hpp>
#include <attune/exec/cpu/products/prefetch.hpp>
#include <attune/exec/cpu/products/widened.hpp>

namespace attune::exec_cpu {

/// Block sizes of the decode path.
template <class T, class Arch>
struct decode_tiling {
  using batch = xsimd::batch<T, Arch>;
  static constexpr int lanes = int(batch::size);
  static constexpr int rows = 4;  ///< at most so many rows share a loaded vector of K or V
  /// With `Rows` rows: the batches of value features at a time, and the keys at a time, each with its pointer. Fewer
  /// where the sums would not fit into registers.
  template <int Rows>
  static constexpr int vectors = registers<Arch> == 32 || Rows < rows ? 4 : 2;
  template <int Rows>
  static constexpr int keys = (std::min)(vectors<Rows>, lanes);
  static constexpr index_t block = 64;  ///< keys between two updates of the reference: one word of bits

  /// Features rounded up to whole batches.
  static constexpr index_t whole(index_t features) { return (features + lanes - 1) / lanes * lanes; }
};

/// Calls use(data, step) with rows [first, first + n) of one head as whole batches of contiguous features. Rows that
/// have this layout are used in place, as they are stored. Others are copied as T and padded with 0. Both give the same
/// numbers in the same places, so the bits are the same.
template <class T, class Arch, class E, class Use>
void with_whole_rows(tensor<E const> const& x, index_t b, index_t h, index_t first, index_t n, T* scratch,
                     Use const& use) {
  index_t const width = x.extents().feature, feature = x.steps().feature, step = x.steps().position;
  index_t const whole = decode_tiling<T, Arch>::whole(width);
  E const* const data = x.row(b, h, first);
  if (feature == 1 && whole == width) return use(data, step);
  for (index_t j = 0; j < n; ++j) {
    T* const to = scratch + j * whole;
    for (index_t d = 0; d < width; ++d) to[d] = T(data[j * step + d * feature]);
    std::fill(to + width, to + whole, T(0));
  }
  use(static_cast<T const*>(scratch), whole);
}

namespace detail {

/// The sums of the keys in the order of the keys. They were joined `Together` neighbours at a time.
template <int Together, class B, std::size_t... L>
ATTUNE_INLINE B in_order_of_keys(B const& x, std::index_sequence<L...>) {
  constexpr std::size_t together = Together, groups = B::size / together;
  return simd::shuffled<(L / together + L % together * groups)...>(x, x);
}

/// Short rows: keys are multiplied together with their neighbours. Otherwise the hardware does not see that they are
/// read sequentially: from memory it took up to half as long again. Long rows: keys that are a few rows apart are
/// multiplied together, each a separate stream. With neighbours it took a tenth longer.
inline constexpr index_t short_row = 256;  // bytes from one key to the next; measured (docs/lab/performance.md)

/// S[r][j] for `Rows` rows. Keys past n repeat the last one, so that whole batches of S are written.
template <class T, class Arch, int Rows, class E, class Step>
ATTUNE_NOINLINE void contract_rows_of_features(T* ATTUNE_RESTRICT out, T const* queries, index_t width, E const* keys,
                                               index_t key_step, index_t n, prefetch_range const& ahead,
                                               Step const& step) {
  using tile = decode_tiling<T, Arch>;
  using batch = typename tile::batch;
  // The sums of keys that are multiplied together are joined first, before they leave their registers.
  constexpr int lanes = tile::lanes, together = tile::template keys<Rows>, groups = lanes / together;
  bool const neighbours = (key_step < 0 ? -key_step : key_step) * index_t(sizeof(E)) <= short_row;
  index_t const next_group = neighbours ? together : 1, next_key = neighbours ? 1 : groups;
  alignas(64) T partial[Rows][groups][lanes];
  for (index_t j = 0; j < n; j += lanes) {
    for (int g = 0; g < groups; ++g) {
      E const* at[together];
      for (int k = 0; k < together; ++k)
        at[k] = keys + (std::min<index_t>)(j + g * next_group + k * next_key, n - 1) * key_step;
      for (int k = 0; k < together; ++k) ahead.fetch(j + g * together + k, 0, ahead.bytes);
      batch acc[Rows][together];
      clear(acc);
      for (index_t d = 0; d < width; d += lanes) {
        batch x[together];
#pragma GCC unroll 8
        for (int k = 0; k < together; ++k) {
          x[k] = load_widened<batch>(at[k] + d);
          keep(x[k]);
        }
#pragma GCC unroll 8
        for (int r = 0; r < Rows; ++r) {
          batch q = batch::load_aligned(queries + r * width + d);
          keep(q);
#pragma GCC unroll 8
          for (int k = 0; k < together; ++k) acc[r][k] = step(x[k], q, acc[r][k], d);
        }
      }
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) sums_of_vectors<groups, lanes, groups>(acc[r]).store_aligned(partial[r][g]);
    }
    for (int r = 0; r < Rows; ++r) {
      batch sums = sums_of_rows<batch, groups>(partial[r][0]);
      if (neighbours) sums = in_order_of_keys<together>(sums, std::make_index_sequence<std::size_t(lanes)>{});
      sums.store_aligned(out + r * tile::block + j);
    }
  }
}

template <class T, class Arch, int Rows, int Vectors, class E>
ATTUNE_NOINLINE index_t accumulate_rows_of_features(T* ATTUNE_RESTRICT sum, index_t width, T const* weights,
                                                    E const* values, index_t value_step, index_t n,
                                                    prefetch_range const& ahead, index_t d) {
  using tile = decode_tiling<T, Arch>;
  using batch = typename tile::batch;
  for (; d + Vectors * tile::lanes <= width; d += Vectors * tile::lanes) {
    batch acc[Rows][Vectors];
    clear(acc);
    E const* at = values + d;
    index_t const from = d * index_t(sizeof(E)),
                  until = (std::min)(ahead.bytes, from + Vectors * tile::lanes * index_t(sizeof(E)));
    for (index_t j = 0; j < n; ++j, at += value_step) {
      if constexpr (Vectors > 1) ahead.fetch(j, from, until);
      batch x[Vectors];
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) {
        x[v] = load_widened<batch>(at + v * tile::lanes);
        keep(x[v]);
      }
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) {
        batch w(weights[r * tile::block + j]);
        keep(w);
#pragma GCC unroll 8
        for (int v = 0; v < Vectors; ++v) acc[r][v] = simd::multiply_add(x[v], w, acc[r][v]);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) {  // a block sums from zero: error grows with the block, not with Lk
        T* const to = sum + r * width + d + v * tile::lanes;
        (batch::load_aligned(to) + acc[r][v]).store_aligned(to);
      }
  }
  return d;
}

template <class T, class Arch, int Rows, class E>
void accumulate_rows_of_features(T* sum, index_t width, T const* weights, E const* values, index_t value_step,
                                 index_t n, prefetch_range const& ahead) {
  constexpr int vectors = decode_tiling<T, Arch>::template vectors<Rows>;
  index_t const d =
      accumulate_rows_of_features<T, Arch, Rows, vectors>(sum, width, weights, values, value_step, n, ahead, 0);
  if (d < width) accumulate_rows_of_features<T, Arch, Rows, 1>(sum, width, weights, values, value_step, n, ahead, d);
}

template <class T, class Arch, int Vectors, class E>
ATTUNE_NOINLINE index_t accumulate_seen_features(T* ATTUNE_RESTRICT sum, index_t width, T const* weights,
                                                 E const* values, index_t value_step, std::uint64_t seen, index_t d) {
  using batch = xsimd::batch<T, Arch>;
  constexpr int lanes = int(batch::size);
  for (; d + Vectors * lanes <= width; d += Vectors * lanes) {
    batch acc[1][Vectors];
    clear(acc);
    for (std::uint64_t rest = seen; rest != 0; rest &= rest - 1) {
      index_t const j = std::countr_zero(rest);
      batch const w(weights[j]);
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v)
        acc[0][v] = simd::multiply_add(load_widened<batch>(values + j * value_step + d + v * lanes), w, acc[0][v]);
    }
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      T* const to = sum + d + v * lanes;
      (batch::load_aligned(to) + acc[0][v]).store_aligned(to);
    }
  }
  return d;
}

/// Calls part(rows, first) with std::integral_constant<int, rows> for each group of rows that shares a register block.
template <class T, class Arch, class Part>
void in_row_blocks(index_t rows, Part const& part) {
  constexpr int most = decode_tiling<T, Arch>::rows;
  index_t r = 0;
  for (; r + most <= rows; r += most) part(std::integral_constant<int, most>{}, r);
  if (r + 2 <= rows) part(std::integral_constant<int, 2>{}, r), r += 2;
  if (r < rows) part(std::integral_constant<int, 1>{}, r);
}

}  // namespace detail

/// out[r][j] = <keys_j, queries_r> for `rows` rows and n <= block keys, or another sum over features, defined by
/// `step`. queries: [rows][width], aligned; width: whole batches; out: [rows][block], written up to the batch of key n
/// - 1.
template <class T, class Arch, class E, class Step = product_step>
void contract_features(T* out, T const* queries, index_t rows, index_t width, E const* keys, index_t key_step,
                       index_t n, prefetch_range const& ahead = {}, Step const& step = {}) {
  constexpr index_t block = decode_tiling<T, Arch>::block;
  detail::in_row_blocks<T, Arch>(rows, [&](auto some, index_t r) {
    detail::contract_rows_of_features<T, Arch, some()>(out + r * block, queries + r * width, width, keys, key_step, n,
                                                       r == 0 ? ahead : prefetch_range{}, step);
  });
}

/// sum[r] += sum over n <= block keys of weights[r][j] values_j. sum: [rows][width], weights: [rows][block].
template <class T, class Arch, class E>
void accumulate_features(T* sum, index_t rows, index_t width, T const* weights, E const* values, index_t value_step,
                         index_t n, prefetch_range const& ahead = {}) {
  constexpr index_t block = decode_tiling<T, Arch>::block;
  detail::in_row_blocks<T, Arch>(rows, [&](auto some, index_t r) {
    detail::accumulate_rows_of_features<T, Arch, some()>(sum + r * width, width, weights + r * block, values,
                                                         value_step, n, r == 0 ? ahead : prefetch_range{});
  });
}

/// The same for one row and the keys whose bit is set: no other value is read. The order of operations is the same as
/// in `accumulate_features`.
template <class T, class Arch, class E>
void accumulate_seen_features(T* sum, index_t width, T const* weights, E const* values, index_t value_step,
                              std::uint64_t seen) {
  constexpr int vectors = decode_tiling<T, Arch>::template vectors<1>;
  index_t const d =
      detail::accumulate_seen_features<T, Arch, vectors>(sum, width, weights, values, value_step, seen, 0);
  if (d < width) detail::accumulate_seen_features<T, Arch, 1>(sum, width, weights, values, value_step, seen, d);
}

}  // namespace attune::exec_cpu
