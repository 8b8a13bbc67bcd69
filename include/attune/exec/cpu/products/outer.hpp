// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   dV[key][d]    += sum_query weight[key][query] dO[query][d]          lanes are features
//   dQ^T[d][query] += sum_key weight[key][query] f(q[d][query], k[key][d])  lanes are queries
//
// The products of the backward pass that the forward pass does not have. Pairs of weight 0 are left out, so that
// nothing in an invisible slot reaches a gradient. Nothing here knows a policy.
#pragma once

#include <algorithm>

#include <attune/exec/cpu/products/buffer.hpp>
#include <attune/exec/cpu/products/microkernel.hpp>
#include <attune/exec/cpu/products/values.hpp>

namespace attune::exec_cpu {

/// Rows cut into panels of tiling::queries features, [panel][row][feature of the panel], padded with 0: the layout that
/// `multiply` reads.
template <class T, class Arch>
struct panels {
  static constexpr index_t width = tiling<T, Arch>::queries;
  static constexpr index_t count(index_t features) { return (features + width - 1) / width; }
  static constexpr index_t padded_width(index_t features) { return count(features) * width; }
  static constexpr index_t size(index_t features, index_t rows) { return padded_width(features) * rows; }

  /// From packed[d][row] with `Lanes` rows, of which the first n are used.
  template <int Lanes>
  ATTUNE_NOINLINE static void from_packed(T* to, T const* packed, index_t features, index_t n) {
    std::fill_n(to, size(features, n), T(0));
    for (index_t d = 0; d < features; ++d) {
      T* const column = to + d / width * n * width + d % width;
      for (index_t l = 0; l < n; ++l) column[l * width] = packed[d * Lanes + l];
    }
  }
  /// From rows [first, first + n) of one head of a tensor.
  ATTUNE_NOINLINE static void from_tensor(T* to, tensor<T const> const& x, index_t b, index_t h, index_t first,
                                          index_t n) {
    index_t const features = x.extents().feature, step = x.steps().feature;
    for (index_t d = 0; d < features; d += width) {
      index_t const some = (std::min)(width, features - d);
      for (index_t l = 0; l < n; ++l, to += width) {
        T const* const from = x.row(b, h, first + l) + d * step;
        for (index_t c = 0; c < some; ++c) to[c] = from[c * step];
        std::fill(to + some, to + width, T(0));
      }
    }
  }
  /// From rows in memory.
  ATTUNE_NOINLINE static void from_rows(T* to, row_block<T> const& rows, index_t features, index_t n) {
    for (index_t first = 0; first < features; first += width) {
      index_t const some = (std::min)(width, features - first);
      for (index_t j = 0; j < n; ++j, to += width) {
        std::copy_n(rows.data + j * rows.step + first, some, to);
        std::fill(to + some, to + width, T(0));
      }
    }
  }
};

/// `multiply` with a separate operand for every sum: acc[r][v] = step(a, b, own[r][v], acc[r][v])
template <class T, class Arch, int Rows, int Vectors, class Step>
ATTUNE_INLINE void multiply_own(xsimd::batch<T, Arch> (&acc)[Rows][Vectors],
                                xsimd::batch<T, Arch> const (&own)[Rows][Vectors], T const* ATTUNE_RESTRICT a,
                                index_t row_step, index_t k_step, T const* ATTUNE_RESTRICT b, index_t n,
                                Step const& step) {
  using batch = xsimd::batch<T, Arch>;
  for (index_t k = 0; k < n; ++k) {
    for (int r = 0; r < Rows; ++r) {
      batch const x(a[r * row_step]);
      for (int v = 0; v < Vectors; ++v)
        acc[r][v] = step(x, batch::load_aligned(b + v * int(batch::size)), own[r][v], acc[r][v]);
    }
    a += k_step;
    b += Vectors * int(batch::size);
  }
}

namespace detail {

/// `queries`: the elements of a row of weights that count. An element holds Step::numbers numbers.
template <class T, class Arch, int Rows, class Step = product_step, class E = T>
ATTUNE_NOINLINE void outer_rows(T* to, index_t step, E const* weights, E const* panel, index_t queries, index_t j,
                                index_t last) {
  using tile = tiling<T, Arch>;
  using batch = typename tile::batch;
  constexpr index_t row = tile::queries / Step::numbers;
  for (; j < last; j += Rows) {
    batch acc[Rows][tile::vectors];
    clear(acc);
    multiply<T, Arch, Rows, tile::vectors>(acc, weights + j * row, row, contiguous{}, panel, queries, Step{});
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < tile::vectors; ++v) {
        T* const at = to + (j + r) * step + v * tile::lanes;
        (batch::load_unaligned(at) + acc[r][v]).store_unaligned(at);
      }
  }
}

/// The same, pair by pair where the weight is not 0, in the same order of operations.
template <class T, class Arch>
ATTUNE_NOINLINE void outer_of_some(T* to, index_t step, T const* weights, T const* panel, index_t queries, index_t n) {
  using tile = tiling<T, Arch>;
  using batch = typename tile::batch;
  for (index_t j = 0; j < n; ++j)
    for (int v = 0; v < tile::vectors; ++v) {
      batch acc(T(0));
      for (index_t l = 0; l < queries; ++l)
        if (T const w = weights[j * tile::queries + l]; w != T(0))
          acc = simd::multiply_add(batch(w), batch::load_aligned(panel + l * tile::queries + v * tile::lanes), acc);
      T* const at = to + j * step + v * tile::lanes;
      (batch::load_unaligned(at) + acc).store_unaligned(at);
    }
}

}  // namespace detail

/// to[j][d] += sum over `queries` lanes of weights[j][lane] rows[lane][d] for n keys. rows: panels; to: padded rows.
/// `finite`: whether the rows contain neither NaN nor infinity.
template <class T, class Arch>
void outer(T* to, index_t step, T const* weights, T const* rows, index_t queries, index_t n, index_t width,
           bool finite) {
  constexpr index_t panel = panels<T, Arch>::width;
  for (index_t first = 0; first < width; first += panel, to += panel, rows += queries * panel) {
    if (!finite) {
      detail::outer_of_some<T, Arch>(to, step, weights, rows, queries, n);
      continue;
    }
    in_register_blocks<tiling<T, Arch>::rows>(n, [&](auto together, index_t j, index_t last) {
      detail::outer_rows<T, Arch, together()>(to, step, weights, rows, queries, j, last);
    });
  }
}

/// For sums over features f(q_d, k_d) that are no products: to[d][query] += sum_key w by_query(q, k).
template <class T, class Arch, class Pair>
ATTUNE_NOINLINE void accumulate_pairs(T* to, row_block<T> const& keys, T const* weights, T const* queries, index_t n,
                                      index_t width, Pair const& pair) {
  using tile = tiling<T, Arch>;
  using batch = typename tile::batch;
  auto const step = [&](batch const& k, batch const& w, batch const& q, batch const& acc) {
    return math::select(w == batch(T(0)), acc, simd::multiply_add(w, pair(q, k), acc));
  };
  for (index_t d = 0; d < width; ++d) {
    batch acc[1][tile::vectors], own[1][tile::vectors];
    for (int v = 0; v < tile::vectors; ++v) {
      acc[0][v] = batch(T(0));
      own[0][v] = batch::load_aligned(queries + d * tile::queries + v * tile::lanes);
    }
    multiply_own<T, Arch, 1, tile::vectors>(acc, own, keys.data + d, 1, keys.step, weights, n, step);
    for (int v = 0; v < tile::vectors; ++v) {
      T* const at = to + d * tile::queries + v * tile::lanes;
      (batch::load_aligned(at) + acc[0][v]).store_aligned(at);
    }
  }
}

/// The other side: to[j][d] += scale[d] sum_query w by_key(q, k). Queries and keys are panels. `scale` is padded, or
/// null for 1.
template <class T, class Arch, class Pair>
ATTUNE_NOINLINE void outer_pairs(T* to, index_t to_step, T const* weights, T const* queries, index_t lanes,
                                 T const* keys, index_t n, index_t width, T const* scale, Pair const& pair) {
  using tile = tiling<T, Arch>;
  using batch = typename tile::batch;
  constexpr index_t panel = panels<T, Arch>::width;
  auto const step = [&](batch const& w, batch const& q, batch const& k, batch const& acc) {
    return math::select(w == batch(T(0)), acc, simd::multiply_add(w, pair(q, k), acc));
  };
  for (index_t first = 0; first < width; first += panel, queries += lanes * panel, keys += n * panel)
    for (index_t j = 0; j < n; ++j) {
      batch acc[1][tile::vectors], own[1][tile::vectors];
      for (int v = 0; v < tile::vectors; ++v) {
        acc[0][v] = batch(T(0));
        own[0][v] = batch::load_aligned(keys + j * panel + v * tile::lanes);
      }
      multiply_own<T, Arch, 1, tile::vectors>(acc, own, weights + j * tile::queries, 0, 1, queries, lanes, step);
      for (int v = 0; v < tile::vectors; ++v) {
        T* const at = to + j * to_step + first + v * tile::lanes;
        if (scale != nullptr) acc[0][v] = acc[0][v] * batch::load_aligned(scale + first + v * tile::lanes);
        (batch::load_unaligned(at) + acc[0][v]).store_unaligned(at);
      }
    }
}

/// to[d][query] += sum_key k[key][d] w[key][query]. Leaves out pairs of weight 0 unless the keys are `finite`.
template <class T, class Arch>
void accumulate_some(T* to, row_block<T> const& keys, T const* weights, T const* queries, index_t n, index_t width,
                     bool finite) {
  if (finite)
    accumulate<T, Arch>(to, keys.data, keys.step, weights, n, width);
  else
    accumulate_pairs<T, Arch>(to, keys, weights, queries, n, width, [](auto const&, auto const& k) { return k; });
}

}  // namespace attune::exec_cpu
