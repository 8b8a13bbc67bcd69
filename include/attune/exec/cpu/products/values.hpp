// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   O^T[dv][query] *= factor[query]        O^T[dv][query] += V[key][dv] P^T[key][query]  where the query sees the key
//
// The parts of the value sum that are not a plain product. Nothing here knows a policy: compiled once per type.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include <attune/core/simd_math.hpp>
#include <attune/exec/cpu/products/buffer.hpp>
#include <attune/exec/cpu/products/lanes.hpp>
#include <attune/exec/cpu/products/microkernel.hpp>
#include <attune/exec/cpu/products/pack.hpp>

namespace attune::exec_cpu {

/// Scales the value sums of a tile lane by lane. A factor is a batch, or attune::detail::row_scale.
template <class T, class Arch, class Factor>
ATTUNE_NOINLINE void scale_rows(T* sum, index_t width, Factor const* factor) {
  using tile = tiling<T, Arch>;
  for (index_t d = 0; d < width; ++d)
    for (int v = 0; v < tile::vectors; ++v) {
      T* const at = sum + d * tile::queries + v * tile::lanes;
      (tile::batch::load_aligned(at) * factor[v]).store_aligned(at);
    }
}

/// to += factor * from, lane by lane, for value sums of a tile.
template <class T, class Arch>
ATTUNE_NOINLINE void add_scaled_rows(T* to, T const* from, index_t width, xsimd::batch<T, Arch> const* factor) {
  using tile = tiling<T, Arch>;
  for (index_t d = 0; d < width; ++d)
    for (int v = 0; v < tile::vectors; ++v) {
      index_t const at = d * tile::queries + v * tile::lanes;
      simd::multiply_add(tile::batch::load_aligned(from + at), factor[v], tile::batch::load_aligned(to + at))
          .store_aligned(to + at);
    }
}

/// True if rows [from, to) contain no NaN and no infinity.
template <class T, class Arch>
ATTUNE_NOINLINE bool finite_rows(row_block<T> const& rows, index_t width, index_t from, index_t to) {
  using batch = xsimd::batch<T, Arch>;
  constexpr index_t lanes = index_t(batch::size);
  for (index_t j = from; j < to; ++j) {
    T const* const x = rows.data + j * rows.step;
    batch worst(T(0));
    index_t d = 0;
    for (; d + lanes <= width; d += lanes) worst = worst + math::zero_if_finite(batch::load_unaligned(x + d));
    T rest = 0;
    for (; d < width; ++d) rest += math::zero_if_finite(x[d]);
    if (!simd::all(worst == batch(T(0))) || rest != T(0)) return false;
  }
  return true;
}

/// The product of `accumulate`, but unseen pairs are left out instead of multiplied by 0: 0 * NaN would be NaN. Keys
/// outside [full_first, full_last) count for the lanes in their bits. The order of operations is the same as in
/// `accumulate`, so an invisible value never changes a bit of any result.
template <class T, class Arch>
ATTUNE_NOINLINE void accumulate_seen(T* sum, row_block<T> const& values, index_t width, index_t n, index_t full_first,
                                     index_t full_last, T const* weights, std::uint64_t const* bits) {
  using tile = tiling<T, Arch>;
  using batch = typename tile::batch;
  for (index_t d = 0; d < width; ++d)
    for (int v = 0; v < tile::vectors; ++v) {
      batch acc(T(0));
      for (index_t j = 0; j < n; ++j) {
        batch const weight = batch::load_aligned(weights + j * tile::queries + v * tile::lanes);
        batch const moved = simd::multiply_add(batch(values.data[j * values.step + d]), weight, acc);
        bool const by_all = j >= full_first && j < full_last;
        acc = by_all ? moved : simd::select(lanes_of<T, Arch>(bits[j] >> (v * tile::lanes)), moved, acc);
      }
      T* const at = sum + d * tile::queries + v * tile::lanes;
      (tile::batch::load_aligned(at) + acc).store_aligned(at);
    }
}

namespace detail {

/// sum[query][dv] += the values of keys [from, to) that the query sees. `step`: from one row of sums to the next.
template <class T, class Arch, int Rows>
ATTUNE_NOINLINE void add_seen_values(T* sum, index_t step, row_block<T> const& values, index_t from, index_t to,
                                     std::uint64_t const* bits, index_t d, index_t last) {
  using tile = tiling<T, Arch>;
  using batch = typename tile::batch;
  for (; d < last; d += Rows) {
    batch acc[Rows][tile::vectors];
    clear(acc);
    for (index_t j = from; j < to; ++j) {
      T const* const x = values.data + j * values.step + d;
#pragma GCC unroll 8
      for (int v = 0; v < tile::vectors; ++v) {
        auto const seen = lanes_of<T, Arch>(bits[j] >> (v * tile::lanes));
#pragma GCC unroll 16
        for (int r = 0; r < Rows; ++r) acc[r][v] = simd::select(seen, batch(acc[r][v] + batch(x[r])), acc[r][v]);
      }
    }
    alignas(64) T seen[Rows][tile::queries];
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < tile::vectors; ++v) acc[r][v].store_aligned(seen[r] + v * tile::lanes);
    for (index_t l = 0; l < tile::queries; ++l)
      for (int r = 0; r < Rows; ++r) sum[l * step + d + r] += seen[r][l];
  }
}

/// sum[dv] += the values of keys [from, to), `Vectors` vectors of features at once. A single vector would wait for its
/// own last sum.
template <class T, class Arch, int Vectors>
ATTUNE_NOINLINE index_t add_all_vectors(T* sum, row_block<T> const& values, index_t from, index_t to, index_t d,
                                        index_t width) {
  using batch = xsimd::batch<T, Arch>;
  constexpr index_t lanes = index_t(batch::size);
  for (; d + Vectors * lanes <= width; d += Vectors * lanes) {
    batch all[Vectors];
    for (batch& x : all) x = batch(T(0));
    for (index_t j = from; j < to; ++j) {
      T const* const x = values.data + j * values.step + d;
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) all[v] = all[v] + batch::load_unaligned(x + v * lanes);
    }
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      T* const at = sum + d + v * lanes;
      (batch::load_unaligned(at) + all[v]).store_unaligned(at);
    }
  }
  return d;
}
template <class T, class Arch>
void add_all_values(T* sum, row_block<T> const& values, index_t width, index_t from, index_t to) {
  index_t d = add_all_vectors<T, Arch, 4>(sum, values, from, to, 0, width);
  d = add_all_vectors<T, Arch, 1>(sum, values, from, to, d, width);
  for (; d < width; ++d) {
    T all(0);
    for (index_t j = from; j < to; ++j) all += values.data[j * values.step + d];
    sum[d] += all;
  }
}

/// to[dv] += from[dv].
template <class T, class Arch>
void add_row(T* to, T const* from, index_t width) {
  using batch = xsimd::batch<T, Arch>;
  constexpr index_t lanes = index_t(batch::size);
  index_t d = 0;
  for (; d + lanes <= width; d += lanes)
    (batch::load_unaligned(to + d) + batch::load_unaligned(from + d)).store_unaligned(to + d);
  for (; d < width; ++d) to[d] += from[d];
}

}  // namespace detail

/// The sum of the values that each query of a tile sees. Values that all queries see are summed once for all of them. A
/// single running sum serves where each key is seen by the same queries as the key before it, or by some of them
/// (causal), or the other way round (the far end of a window).
template <class T, class Arch>
class plain_sums {
  using tile = tiling<T, Arch>;

 public:
  static index_t size(index_t width) { return (tile::queries + 2) * padded<T>(width); }

  plain_sums() = default;
  /// Sets the sums at `memory` to 0.
  plain_sums(T* memory, index_t width)
      : own_(memory), common_(memory + tile::queries * padded<T>(width)), running_(common_ + padded<T>(width)),
        width_(width), step_(padded<T>(width)) {
    std::fill_n(memory, size(width), T(0));
  }
  T operator()(index_t query, index_t d) const { return own_[query * step_ + d] + common_[d]; }
  /// Keys outside [full_first, full_last) count for the lanes in their bits, of which there are `queries`. Values that
  /// no query sees may be anything.
  void add(row_block<T> const& values, index_t n, index_t full_first, index_t full_last, std::uint64_t const* bits) {
    if (full_first < full_last) detail::add_all_values<T, Arch>(common_, values, width_, full_first, full_last);
    add_seen(values, 0, full_first, bits);
    add_seen(values, full_last, n, bits);
  }

 private:
  void add_seen(row_block<T> const& values, index_t from, index_t to, std::uint64_t const* bits) {
    if (from >= to) return;
    std::uint64_t arrivals = 0, departures = 0;
    for (index_t j = from + 1; j < to; ++j) arrivals |= bits[j] & ~bits[j - 1], departures |= bits[j - 1] & ~bits[j];
    if (arrivals == 0) return add_nested(values, from, to, 1, bits);
    if (departures == 0) return add_nested(values, to - 1, from - 1, -1, bits);
    in_register_blocks<tile::rows>(width_, [&](auto rows, index_t first, index_t last) {
      detail::add_seen_values<T, Arch, rows()>(own_, step_, values, from, to, bits, first, last);
    });
  }
  /// A query gets the running sum after the last key that it sees.
  ATTUNE_NOINLINE void add_nested(row_block<T> const& values, index_t from, index_t to, index_t step,
                                  std::uint64_t const* bits) {
    std::fill_n(running_, width_, T(0));
    for (index_t j = from; j != to && bits[j] != 0; j += step) {
      detail::add_row<T, Arch>(running_, values.data + j * values.step, width_);
      std::uint64_t const staying = j + step == to ? 0 : bits[j + step];
      for (std::uint64_t last = bits[j] & ~staying; last != 0; last &= last - 1)
        detail::add_row<T, Arch>(own_ + index_t(std::countr_zero(last)) * step_, running_, width_);
    }
  }

  T *own_ = nullptr, *common_ = nullptr, *running_ = nullptr;
  index_t width_ = 0, step_ = 0;
};

}  // namespace attune::exec_cpu
