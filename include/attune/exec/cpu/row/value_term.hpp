// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   sum[d][query] += sum_n W_n t_n[d],   W_n: the sum of the weights of the keys that read row n
//
// The value term of a row: forward, gradients, tangents and decode. A tile and a block of keys meet few distances. So
// weights are summed by the row that their distance reads, and one product with the different rows follows. Table
// entries are finite: a weight of 0 may mean "not seen".
#pragma once

#include <algorithm>
#include <bit>

#include <attune/exec/cpu/contraction/distance.hpp>
#include <attune/exec/cpu/contraction/sinks.hpp>
#include <attune/exec/cpu/products/few_rows.hpp>
#include <attune/exec/cpu/products/lanes.hpp>
#include <attune/exec/cpu/products/microkernel.hpp>
#include <attune/exec/cpu/row/bind.hpp>
#include <attune/exec/value_term.hpp>

namespace attune::exec_cpu {

/// The rows of a value term's table that a tile and a block of keys meet. Neighboring distances with the same row count
/// as one.
template <class T, class Arch>
struct met_rows {
  static constexpr index_t queries = tiling<T, Arch>::queries, most = detail::distances_of_block<T, Arch>,
                           some = 32;  ///< features at a time
  index_t keys, count = 0;
  index_t row[std::size_t(most)];  ///< of the table
  int number[std::size_t(most)];   ///< by distance, from the tile's first query and the block's last key on

  template <class Term>
  met_rows(Term const& term, tile_place const& at, key_block_place const& block) : keys(block.n) {
    index_t const first = detail::first_distance(at, block), farthest = detail::farthest_distance(at);
    for (index_t n = 0; n < queries + keys - 1; ++n) {  // lanes past the last query repeat its farthest distance
      index_t const r = contraction::tables::vectors::row(term, (std::min)(first + n, farthest));
      if (count == 0 || row[count - 1] != r) row[count++] = r;
      number[n] = int(count - 1);
    }
  }
  /// The number among the rows that the pair of key j and lane l reads.
  index_t of_pair(index_t j, index_t l) const { return number[keys - 1 - j + l]; }

  /// to[number][lane] = the sum of weights[key][lane] over the keys that read the row.
  void sort(T* ATTUNE_RESTRICT to, T const* ATTUNE_RESTRICT weights) const {
    std::fill_n(to, count * queries, T(0));
    for (index_t j = 0; j < keys; ++j) {
      index_t const first = of_pair(j, 0);
      if (first == of_pair(j, queries - 1))  // the first and the last lane read one row, and so do those between
        for (index_t l = 0; l < queries; ++l) to[first * queries + l] += weights[j * queries + l];
      else
        for (index_t l = 0; l < queries; ++l) to[of_pair(j, l) * queries + l] += weights[j * queries + l];
    }
  }
  /// to[key][lane] += from[number of the pair's row][lane].
  void spread(T* ATTUNE_RESTRICT to, T const* ATTUNE_RESTRICT from) const {
    for (index_t j = 0; j < keys; ++j) {
      index_t const first = of_pair(j, 0);
      if (first == of_pair(j, queries - 1))
        for (index_t l = 0; l < queries; ++l) to[j * queries + l] += from[first * queries + l];
      else
        for (index_t l = 0; l < queries; ++l) to[j * queries + l] += from[of_pair(j, l) * queries + l];
    }
  }
  /// Calls use(first feature, features, rows of the table from that feature on, [number][some]) a few features at a
  /// time.
  template <class Use>
  void each_stretch(table const& x, tile_place const& at, Use const& use) const {
    alignas(64) T copy[std::size_t(most * some)];
    for (index_t first = 0; first < x.columns(); first += some) {
      index_t const features = (std::min)(some, x.columns() - first);
      for (index_t n = 0; n < count; ++n)
        for (index_t d = 0; d < features; ++d) copy[n * some + d] = T(x(at.b, at.h, row[n], first + d));
      use(first, features, static_cast<T const*>(copy));
    }
  }
};

/// sum[d][lane] += sum over the keys of weights[key][lane] t[row of the pair][d]. x: the table, or its direction.
template <class T, class Arch, class Term>
ATTUNE_NOINLINE void add_term(Term const& term, table const& x, tile_place const& at, key_block_place const& keys,
                              T const* weights, T* sum) {
  using rows = met_rows<T, Arch>;
  rows const met(term, at, keys);
  alignas(64) T sorted[std::size_t(rows::most * rows::queries)];
  met.sort(sorted, weights);
  met.each_stretch(x, at, [&](index_t first, index_t features, T const* copy) {
    accumulate<T, Arch>(sum + first * rows::queries, copy, rows::some, sorted, met.count, features);
  });
}
/// gain[key][lane] += <do, t[row of the pair]>. d_out: [d][lane].
template <class T, class Arch, class Term>
ATTUNE_NOINLINE void add_gains_of_term(Term const& term, table const& x, tile_place const& at,
                                       key_block_place const& keys, T const* d_out, T* gain) {
  using rows = met_rows<T, Arch>;
  constexpr index_t queries = rows::queries;
  rows const met(term, at, keys);
  alignas(64) T products[std::size_t(rows::most * queries)], part[std::size_t(rows::most * queries)];
  std::fill_n(products, met.count * queries, T(0));
  met.each_stretch(x, at, [&](index_t first, index_t features, T const* copy) {
    contract<T, Arch>(part, copy, rows::some, d_out + first * queries, features, met.count);
    for (index_t n = 0; n < met.count * queries; ++n) products[n] += part[n];
  });
  met.spread(gain, products);
}
/// dt[row of the pair] += sum of weights[key][lane] do. A weight of 0 adds nothing: lanes past the last query have it.
template <class T, class Arch, class Term>
ATTUNE_NOINLINE void pull_term(Term const& term, tile_place const& at, key_block_place const& keys, T const* weights,
                               T const* d_out, gradient_array<double>& to) {
  using rows = met_rows<T, Arch>;
  using batch = typename tiling<T, Arch>::batch;
  constexpr index_t lanes = tiling<T, Arch>::lanes;
  rows const met(term, at, keys);
  alignas(64) T sorted[std::size_t(rows::most * rows::queries)], sums[std::size_t(lanes)];
  met.sort(sorted, weights);
  batch const zero(T(0));
  for (index_t n = 0; n < met.count; ++n) {
    T const* const w = sorted + n * rows::queries;
    if (std::all_of(w, w + rows::queries, [](T const& x) { return x == T(0); })) continue;
    for (index_t first = 0; first < term.vectors.columns(); first += lanes) {
      index_t const features = (std::min)(lanes, term.vectors.columns() - first);
      batch products[std::size_t(lanes)];
      for (index_t d = 0; d < lanes; ++d) {
        products[d] = zero;
        for (index_t l = 0; d < features && l < rows::queries; l += lanes) {
          batch const x = batch::load_aligned(w + l), y = batch::load_aligned(d_out + (first + d) * rows::queries + l);
          products[d] = products[d] + math::select(x == zero, zero, batch(x * y));
        }
      }
      sums_of_vectors<1, int(lanes)>(products).store_aligned(sums);
      for (index_t d = 0; d < features; ++d) to(0, 0, met.row[n], first + d) += double(sums[d]);
    }
  }
}

/// In decode: sum[row][d] += sum over the keys of weights[row][key] t[row of the pair][d]. seen[r]: a bit for each of
/// the keys that the row sees.
template <class T, class Arch, class Term>
ATTUNE_NOINLINE void add_decode_term(Term const& term, decode_place const& at, key_block_place const& keys,
                                     T const* weights, std::uint64_t const* seen, T* sum, index_t step) {
  table const& x = term.vectors;
  for (index_t r = 0; r < at.rows; ++r) {
    index_t const position = at.query_of(r) + at.p->offset_of(at.b), head = at.head_of(r);
    auto const row_of = [&](index_t j) { return contraction::tables::vectors::row(term, position - (keys.first + j)); };
    for (std::uint64_t rest = seen[r]; rest != 0;) {
      index_t const row = row_of(std::countr_zero(rest));
      T weight(0);
      for (; rest != 0 && row_of(std::countr_zero(rest)) == row; rest &= rest - 1)
        weight += weights[r * decode_tiling<T, Arch>::block + std::countr_zero(rest)];
      for (index_t d = 0; d < x.columns(); ++d) sum[r * step + d] += weight * T(x(at.b, head, row, d));
    }
  }
}

}  // namespace attune::exec_cpu
