// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   dV[key][d]     += sum_c P[key][c] . dO[c][d]           c: pairs of queries, lanes are features
//   dQ^T[d][query] += sum_c K[c][d] . dS^T[c][query]       c: pairs of keys, lanes are queries
//
// The products of the backward pass on pairs of bf16 numbers (products/outer.hpp has them in float). Query l of a tile
// makes a pair with query l + lanes, so two batches of weights become a batch of pairs without a permutation. Numbers
// of weight 0 are left out, so that nothing in an invisible slot reaches a gradient. Nothing here knows a policy.
#pragma once

#include <algorithm>

#include <attune/exec/cpu/bf16/products.hpp>
#include <attune/exec/cpu/products/outer.hpp>

namespace attune::exec_cpu {

/// The rows of a tile as panels of pairs of queries, [panel][pair of queries][feature of the panel], padded with 0.
template <class Arch>
struct pair_panels {
  using tile = tiling<float, Arch>;
  static_assert(tile::vectors == 2, "attune: a pair of queries has one query of each batch of a tile");
  static constexpr index_t width = panels<float, Arch>::width;
  static constexpr index_t size(index_t features) { return panels<float, Arch>::size(features, tile::lanes); }
  /// The pairs of a tile of which `count` queries exist.
  static constexpr index_t rows(index_t count) { return (std::min)(index_t(tile::lanes), count); }

  /// From pairs of features, [pair of features][query].
  ATTUNE_NOINLINE static void from_features(number_pair* to, number_pair const* packed, index_t features,
                                            index_t count) {
    index_t const pairs = rows(count);
    std::fill_n(to, panels<float, Arch>::size(features, pairs), number_pair(0));
    for (index_t d = 0; d < features; ++d) {
      number_pair* const column = to + d / width * pairs * width + d % width;
      number_pair const* const first = packed + d / 2 * tile::queries;
      int const shift = int(d % 2) * 16;
      for (index_t l = 0; l < pairs; ++l) {
        number_pair const second = l + tile::lanes < count ? first[l + tile::lanes] >> shift << 16 : 0;
        column[l * width] = (first[l] >> shift & 0xffffu) | second;
      }
    }
  }
};

namespace detail {

/// The weights of n keys in pairs: [key][pair of queries].
template <class Unit, class Arch>
ATTUNE_NOINLINE void pair_queries(number_pair* to, float const* weights, index_t n) {
  using tile = tiling<float, Arch>;
  using batch = typename tile::batch;
  for (index_t j = 0; j < n; ++j, to += tile::lanes, weights += tile::queries)
    Unit::rounded(batch::load_aligned(weights), batch::load_aligned(weights + tile::lanes)).store_aligned(to);
}

/// Ones in the bits of the numbers of a pair that are not 0.
constexpr number_pair halves_not_zero(number_pair x) {
  return ((x & 0x7fffu) != 0 ? 0xffffu : 0u) | ((x & 0x7fff0000u) != 0 ? 0xffff0000u : 0u);
}

/// The numbers of each pair of keys whose weight is not 0, for `accumulate_some_pairs`.
template <class Arch>
struct weighted_pairs {
  number_pair const* weights;  ///< [pair of keys][query]
  number_pair operator()(index_t c, int lane) const {
    return halves_not_zero(weights[c * tiling<float, Arch>::queries + lane]);
  }
};

/// `outer` pair by pair: numbers of weight 0 that are not finite count as 0. Operations have the same order.
template <class Unit, class Arch>
ATTUNE_NOINLINE void outer_of_some_pairs(float* to, index_t step, number_pair const* weights, number_pair const* panel,
                                         index_t pairs, index_t n) {
  using tile = tiling<float, Arch>;
  using batch_of_pairs = xsimd::batch<number_pair, Arch>;
  for (index_t j = 0; j < n; ++j)
    for (int v = 0; v < tile::vectors; ++v) {
      typename pair_multiplier<Unit>::template sum<Arch> sum(to + j * step + v * tile::lanes);
      for (index_t c = 0; c < pairs; ++c) {
        number_pair const w = weights[j * tile::lanes + c], counts = halves_not_zero(w);
        alignas(64) number_pair own[tile::lanes];
        for (int l = 0; l < tile::lanes; ++l) {
          number_pair const x = panel[c * tile::queries + v * tile::lanes + l];
          own[l] = (x & counts) | (finite_or_zero(x) & ~counts);
        }
        sum.add(c, batch_of_pairs(w), batch_of_pairs::load_aligned(own));
      }
      sum.finish(pairs);
    }
}

}  // namespace detail

/// to[j][d] += sum over pairs of queries of weights[j][pair] . rows[pair][d] for n keys, `count` queries of the tile.
/// rows: pair_panels; to: rows padded to panels. `finite`: whether the rows contain neither NaN nor infinity.
template <class Unit, class Arch>
void outer_of_pairs(float* to, index_t step, number_pair const* weights, number_pair const* rows, index_t count,
                    index_t n, index_t width, bool finite) {
  constexpr index_t panel = pair_panels<Arch>::width;
  index_t const pairs = pair_panels<Arch>::rows(count);
  for (index_t first = 0; first < width; first += panel, to += panel, rows += pairs * panel) {
    if (finite)
      pair_multiplier<Unit>::template outer<Arch>(to, step, weights, rows, pairs, n);
    else
      detail::outer_of_some_pairs<Unit, Arch>(to, step, weights, rows, pairs, n);
  }
}

/// to[d][query] += sum over n pairs of keys, in whole groups, of keys(pair, d) . weights[pair][query]. `finite`:
/// whether the keys contain neither NaN nor infinity.
template <class Unit, class Arch>
void accumulate_pairs_of_keys(float* to, paired_values const& keys, number_pair const* weights, index_t n,
                              index_t width, bool finite) {
  if (finite)
    pair_multiplier<Unit>::template accumulate<Arch>(to, keys, weights, n, width);
  else
    detail::accumulate_some_pairs<Unit, Arch>(to, keys, width, weights, n, detail::weighted_pairs<Arch>{weights});
}

}  // namespace attune::exec_cpu
