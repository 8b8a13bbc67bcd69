// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   S[row][key]    = sum_d K[key][d] Q[row][d]                  K, Q as they are stored
//   O[row][dv]    += sum_key P[row][key] V[key][dv]             V as it is stored, P rounded to bf16
//
// The products of products/few_rows.hpp on pairs of bf16 numbers: nothing is widened. Two keys share a vector, which
// halves the number of sums over lanes. The rows of V of two neighboring keys are interleaved once for all rows of P.
// Weights in two parts (the rounded weight and the rest) would be off by 2^-17 instead of 2^-8, but everything would
// take a quarter longer (docs/lab/performance.md).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <attune/exec/cpu/contraction/kinds.hpp>
#include <attune/exec/cpu/products/bf16.hpp>

namespace attune::exec_cpu {

struct bf16_products;

#if defined(__AVX512BF16__) && defined(__AVX512BW__)

namespace detail {

/// acc[r][k] += <x_k, q_r> for `Rows` rows, `row_step` floats apart.
template <class Arch, int Rows, int Vectors>
ATTUNE_INLINE void multiply_pairs(xsimd::batch<float, Arch> (&acc)[Rows][Vectors], bf16_pairs (&x)[Vectors],
                                  float const* queries, index_t row_step) {
#pragma GCC unroll 8
  for (int k = 0; k < Vectors; ++k) keep(x[k]);
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
    bf16_pairs q = bf16_pairs::packed(queries + r * row_step);
    keep(q);
#pragma GCC unroll 8
    for (int k = 0; k < Vectors; ++k) acc[r][k] = add_products(acc[r][k], x[k], q);
  }
}

/// The sums of the four numbers in each quarter of four vectors. The sum of vector v is at position v of the quarter.
template <class Arch>
ATTUNE_INLINE xsimd::batch<float, Arch> sums_of_quarters(xsimd::batch<float, Arch> const& a,
                                                         xsimd::batch<float, Arch> const& b,
                                                         xsimd::batch<float, Arch> const& c,
                                                         xsimd::batch<float, Arch> const& d) {
  return even_lanes(halves_added(a, b), halves_added(c, d));
}

/// The offsets of 16 keys from the first of them, counted in elements. If there are fewer keys, the last one repeats.
struct key_places {
  index_t at[16];
  ATTUNE_INLINE key_places(index_t key_step, index_t keys) {
    for (index_t k = 0; k < 16; ++k) at[k] = (std::min)(k, keys - 1) * key_step;
  }
};

/// For the eight keys from `at` on: sums that remain to be summed over quarters of vectors. sums[r][0] has the sums of
/// keys 0, 1, 4 and 5, sums[r][1] the others. A vector holds 16 features of a key and of the next key.
template <class Arch, int Rows>
ATTUNE_INLINE void contract_eight(xsimd::batch<float, Arch> (&sums)[Rows][2], float const* queries, index_t packed,
                                  index_t width, bfloat16 const* keys, index_t const* at) {
  using batch = xsimd::batch<float, Arch>;
  constexpr int together = 4, lanes = 16;
  bfloat16 const *low[together], *high[together];
#pragma GCC unroll 8
  for (int k = 0; k < together; ++k) {
    low[k] = keys + at[2 * k];
    high[k] = keys + at[2 * k + 1];
  }
  batch acc[Rows][together];
  clear(acc);
  index_t const whole = width / lanes * lanes;
  index_t d = 0;
  for (; d < whole; d += lanes) {
    bf16_pairs x[together];
#pragma GCC unroll 8
    for (int k = 0; k < together; ++k) x[k] = bf16_pairs::at_both(low[k] + d, high[k] + d);
    multiply_pairs(acc, x, queries + d, packed);
  }
  if (d < width) {
    bf16_pairs x[together];
#pragma GCC unroll 8
    for (int k = 0; k < together; ++k) x[k] = bf16_pairs::at_both(low[k] + d, high[k] + d, width - d);
    multiply_pairs(acc, x, queries + d, packed);
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
    sums[r][0] = eighths_added(acc[r][0], acc[r][2]);
    sums[r][1] = eighths_added(acc[r][1], acc[r][3]);
  }
}

/// S[r][j] for `Rows` rows. Keys past n repeat the last one, so that whole batches of S are written. queries:
/// [Rows][packed], each 16 numbers stored twice.
template <class Arch, int Rows>
ATTUNE_NOINLINE void contract_rows_of_pairs(float* ATTUNE_RESTRICT out, float const* queries, index_t width,
                                            bfloat16 const* keys, index_t key_step, index_t n,
                                            prefetch_range const& ahead) {
  using tile = decode_tiling<float, Arch>;
  using batch = typename tile::batch;
  constexpr index_t lanes = tile::lanes;
  index_t const packed = tile::whole(width);
  key_places places(key_step, n);
  for (index_t j = 0; j < n; j += lanes) {
    if (n - j < lanes) places = key_places(key_step, n - j);
    batch first[Rows][2], second[Rows][2];
    ahead.fetch_rows(j, j + lanes / 2);
    contract_eight<Arch, Rows>(first, queries, packed, width, keys + j * key_step, places.at);
    ahead.fetch_rows(j + lanes / 2, j + lanes);
    contract_eight<Arch, Rows>(second, queries, packed, width, keys + j * key_step, places.at + 8);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r)
      in_order_of_eights(sums_of_quarters(first[r][0], first[r][1], second[r][0], second[r][1]))
          .store_aligned(out + r * tile::block + j);
  }
}

/// The weights of a block, rounded, in pairs of neighboring keys.
struct paired_weights {
  alignas(64) std::uint32_t of[32];
};
template <class Arch>
ATTUNE_INLINE void pair_weights(paired_weights& to, float const* weights, index_t n) {
  using batch = xsimd::batch<float, Arch>;
  for (index_t j = 0; j < n; j += index_t(batch::size)) store_rounded(to.of + j / 2, batch::load_aligned(weights + j));
}

/// O += P V, 32 `Vectors` features at a time from feature d on. With one vector, the remaining width - d features may
/// fill only a part of it. `seen`: the keys whose values are read; other values count as 0.
template <class Arch, int Rows, int Vectors, bool All>
ATTUNE_NOINLINE index_t accumulate_rows_of_pairs(float* ATTUNE_RESTRICT sum, index_t width,
                                                 paired_weights const* weights, bfloat16 const* values,
                                                 index_t value_step, index_t n, std::uint64_t seen,
                                                 prefetch_range const& ahead, index_t d) {
  using tile = decode_tiling<float, Arch>;
  using batch = typename tile::batch;
  constexpr index_t lanes = tile::lanes, features = 2 * lanes * Vectors;
  index_t const whole = tile::whole(width);
  for (; Vectors == 1 ? d < width : d + features <= width; d += features) {
    batch acc[Rows][2 * Vectors];
    clear(acc);
    index_t const some = (std::min)(features, width - d);  // fewer only with one vector
    prefetch_range next = ahead.part(d * index_t(sizeof(bfloat16)));
    for (index_t j = 0; j < n; j += 2) {
      bfloat16 const* const at = values + d + j * value_step;
      if constexpr (Vectors > 1) next.fetch_next<Vectors>(), next.fetch_next<Vectors>();
      bf16_pairs x[2 * Vectors];
      bool const first = All || (seen >> j & 1) != 0, second = j + 1 < n && (All || (seen >> (j + 1) & 1) != 0);
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) {
        bf16_pairs a = bf16_pairs::zero(), b = a;
        if constexpr (Vectors > 1) {
          if (first) a = bf16_pairs::at(at + v * 2 * lanes);
          if (second) b = bf16_pairs::at(at + value_step + v * 2 * lanes);
        } else {
          if (first) a = bf16_pairs::at(at, some);
          if (second) b = bf16_pairs::at(at + value_step, some);
        }
        x[2 * v] = pairs_of_first_fours(a, b);
        x[2 * v + 1] = pairs_of_second_fours(a, b);
        keep(x[2 * v]);
        keep(x[2 * v + 1]);
      }
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) {
        bf16_pairs w = bf16_pairs::everywhere(weights[r].of + j / 2);
        keep(w);
#pragma GCC unroll 8
        for (int v = 0; v < 2 * Vectors; ++v) acc[r][v] = add_products(acc[r][v], x[v], w);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < 2 * Vectors; v += 2) {  // a block sums from zero: error grows with the block, not with Lk
        in_order(acc[r][v], acc[r][v + 1]);
        float* const to = sum + r * whole + d + v * lanes;
        (batch::load_aligned(to) + acc[r][v]).store_aligned(to);
        if (Vectors > 1 || d + lanes < whole)
          (batch::load_aligned(to + lanes) + acc[r][v + 1]).store_aligned(to + lanes);
      }
  }
  return d;
}

template <class Arch, int Rows, bool All>
void accumulate_pairs(float* sum, index_t width, float const* weights, bfloat16 const* values, index_t value_step,
                      index_t n, std::uint64_t seen, prefetch_range const& ahead) {
  paired_weights pairs[Rows];
  for (int r = 0; r < Rows; ++r) pair_weights<Arch>(pairs[r], weights + r * decode_tiling<float, Arch>::block, n);
  index_t const d =
      accumulate_rows_of_pairs<Arch, Rows, 2, All>(sum, width, pairs, values, value_step, n, seen, ahead, 0);
  if (d < width) accumulate_rows_of_pairs<Arch, Rows, 1, All>(sum, width, pairs, values, value_step, n, seen, ahead, d);
}

/// to[r]: the query of row r, padded with 0, each 16 numbers stored twice. The numbers came from 16 bits and become
/// what they were, except that subnormal ones become 0.
template <class Arch>
void pack_pairs(float* to, tensor<float const> const& x, decode_place const& at) {
  using tile = decode_tiling<float, Arch>;
  index_t const width = x.extents().feature, step = x.steps().feature, lanes = tile::lanes, whole = tile::whole(width);
  for (index_t r = 0; r < at.rows; ++r, to += whole) {
    float const* const from = x.row(at.b, at.head_of(r), at.query_of(r));
    for (index_t d = 0; d < whole; d += lanes) {
      typename tile::batch numbers;
      if (step == 1 && d + lanes <= width) {
        numbers = tile::batch::load_unaligned(from + d);
      } else {
        alignas(64) float some[tile::lanes]{};
        for (index_t l = 0; l < (std::min)(lanes, width - d); ++l) some[l] = from[(d + l) * step];
        numbers = tile::batch::load_aligned(some);
      }
      alignas(64) std::uint32_t twice[tile::lanes];
      store_rounded(twice, numbers);
      store_rounded(twice + lanes / 2, numbers);
      std::memcpy(to + d, twice, sizeof twice);
    }
  }
}

}  // namespace detail

/// Products of pairs of bf16 in decode(). See float_products.
struct bf16_products {
  /// Calls use(data, step). If features are contiguous, it reads the rows in place, whatever the width.
  template <class T, class Arch, class Use>
  static void with_rows(tensor<bfloat16 const> const& x, index_t b, index_t h, index_t first, index_t n, float* scratch,
                        Use const& use) {
    index_t const width = x.extents().feature, feature = x.steps().feature, step = x.steps().position;
    bfloat16 const* const data = x.row(b, h, first);
    if (feature == 1) return use(data, step);
    auto* const to = reinterpret_cast<bfloat16*>(scratch);
    for (index_t j = 0; j < n; ++j)
      for (index_t d = 0; d < width; ++d) to[j * width + d] = data[j * step + d * feature];
    use(static_cast<bfloat16 const*>(to), width);
  }
  template <class T, class Arch>
  static void accumulate(float* sum, index_t rows, index_t width, float const* weights, bfloat16 const* values,
                         index_t value_step, index_t n, prefetch_range const& ahead) {
    using tile = decode_tiling<float, Arch>;
    detail::in_row_blocks<float, Arch>(rows, [&](auto some, index_t r) {
      detail::accumulate_pairs<Arch, some(), true>(sum + r * tile::whole(width), width, weights + r * tile::block,
                                                   values, value_step, n, 0, r == 0 ? ahead : prefetch_range{});
    });
  }
  /// Gives the same bits as if nothing were hidden and unseen values were finite: their weights are 0.
  template <class T, class Arch>
  static void accumulate_seen(float* sum, index_t width, float const* weights, bfloat16 const* values,
                              index_t value_step, index_t n, std::uint64_t seen) {
    if (seen != 0) detail::accumulate_pairs<Arch, 1, false>(sum, width, weights, values, value_step, n, seen, {});
  }

  /// Dot products of features are products of pairs of bf16. Everything else is computed in float.
  template <class C, class T, class Arch>
  struct contractor : decode_contractor<C, T, Arch> {};
  template <class C, class Arch>
  struct of_pairs : decode_contractor<C, float, Arch> {
    static constexpr field query = C::x::of, key = C::y::of;
    using base = decode_contractor<C, float, Arch>;
    template <class In, class Owner>
    static void pack(typename base::packed const& to, In const& in, Owner const&, decode_place const& at) {
      detail::pack_pairs<Arch>(to.q, member<query>(in), at);
    }
    template <class In, class Owner>
    static void run(float* to, typename base::packed const& own, In const& in, Owner const&, decode_place const& at,
                    key_block_place const& block, typename base::copies const& memory) {
      using tile = decode_tiling<float, Arch>;
      tensor<bfloat16 const> const& keys = feature_rows<key>(in);
      index_t const head = at.p->group(at.head, at.p->heads_of(key)), width = keys.extents().feature;
      with_rows<float, Arch>(
          keys, at.b, head, block.first, block.n, memory.keys, [&](bfloat16 const* from, index_t key_step) {
            detail::in_row_blocks<float, Arch>(at.rows, [&](auto some, index_t r) {
              detail::contract_rows_of_pairs<Arch, some()>(to + r * tile::block, own.q + r * tile::whole(width), width,
                                                           from, key_step, block.n,
                                                           r == 0 ? at.values : prefetch_range{});
            });
          });
    }
  };
  template <contraction::PlainProduct C, class T, class Arch>
  struct contractor<C, T, Arch> : of_pairs<C, Arch> {};
};

#endif

}  // namespace attune::exec_cpu
