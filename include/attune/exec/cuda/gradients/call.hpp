// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Numbers and pointers that the programs and tiles of a VJP read and write.
#pragma once

#include <attune/exec/cuda/gradients/facts.hpp>

namespace attune::exec_cuda {

/// The numbers of a row that its pairs read, in pieces of 16 bytes. Tiles copy the first `chunks` of them.
template <class Op>
struct alignas(16) pair_record {
  using facts = gradient_facts<Op>;
  float scale, gap;         ///< log2 of a mass is scale s + gap: s is the product of an affine operator, or the logit
  float factor, by_earned;  ///< see detail::mass_pair, as are share and by_ground
  int first, last;          ///< the hull of the keys that the row sees
  float reference, unit;    ///< of masses; unit: the mass of a key at the ground's level
  float share, by_ground, slope, unused;                                   ///< slope: of an affine operator
  std::uint32_t bound[(sizeof(bound_operator<Op, float>) + 15) / 16 * 4];  ///< bytes of the operator bound to the row

  static constexpr bool needs_share = facts::is::is.uniform_share || facts::is::is.ground_mass;
  static constexpr int chunks = facts::affine ? (needs_share ? 3 : 2) : int(sizeof(pair_record) / 16);
};

/// Where the gradient by an operand goes. Absent and without parts: nowhere.
template <class E>
struct row_target {
  tensor<E> to = {};       ///< features are adjacent
  float* parts = nullptr;  ///< instead: (B, heads, positions, width) floats, which are summed later
  index_t heads = 0, positions = 0, width = 0;
  bool stores_pairs = false;  ///< two features of `to` fit one store

  ATTUNE_HD bool wanted() const { return parts != nullptr || !to.absent(); }
  /// A number of the parts.
  ATTUNE_HD float& part(index_t b, index_t h, index_t n, index_t d) const {
    return parts[((b * heads + h) * positions + n) * width + d];
  }
  /// Writes features d and d + 1 of a row; d is even. Features past the width are dropped.
  ATTUNE_HD void put(index_t b, index_t h, index_t n, int d, float x, float y) const {
    put_pairs<1>(b, h, n, d, [&](int, int e) { return e == 0 ? x : y; });
  }
  /// The same for Count pairs of features, 8 apart: value(c, e) is feature d + 8 c + e.
  template <int Count, class Value>
  ATTUNE_HD ATTUNE_INLINE void put_pairs(index_t b, index_t h, index_t n, int d, Value const& value) const {
    if (parts != nullptr)
      put_each<Count>(parts + ((b * heads + h) * positions + n) * width, d, value);
    else if (stores_pairs)
      put_both<Count>(to.row(b, h, n), d, value);
    else
      put_each<Count>(to.row(b, h, n), d, value);
  }

 private:
  template <int Count, class N, class Value>
  ATTUNE_HD ATTUNE_INLINE void put_each(N* at, int d, Value const& value) const {
    ATTUNE_UNROLL
    for (int c = 0; c < Count; ++c) {
      ATTUNE_UNROLL
      for (int e = 0; e < 2; ++e)
        if (d + 8 * c + e < width) at[d + 8 * c + e] = N(value(c, e));
    }
  }
  template <int Count, class Value>
  ATTUNE_HD ATTUNE_INLINE void put_both(E* at, int d, Value const& value) const {
    ATTUNE_UNROLL
    for (int c = 0; c < Count; ++c) {
      if (d + 8 * c < width) store_two(at + d + 8 * c, value(c, 0), value(c, 1));
    }
  }
};

/// Where the gradient by an input with a number for each pair goes. Absent and without parts: nowhere.
template <class E>
struct pair_target {
  tensor<E> to = {};       ///< every pair has its own number
  float* parts = nullptr;  ///< instead: floats of these extents, which are added to; axes of extent 1 are shared
  index_t batch = 1, heads = 1, queries = 0, keys = 0;

  ATTUNE_HD bool wanted() const { return parts != nullptr || !to.absent(); }
  /// A number of the parts.
  ATTUNE_HD float& part(index_t b, index_t h, index_t i, index_t j) const {
    return parts[(((batch == 1 ? 0 : b) * heads + (heads == 1 ? 0 : h)) * queries + i) * keys + j];
  }
  ATTUNE_HD void put(index_t b, index_t h, index_t i, index_t j, float x) const {
    if (parts != nullptr)
      part(b, h, i, j) += x;
    else
      to(b, h, i, j) = E(x);
  }
};

/// Hulls of the keys that rows of a tile see: some row keys of [first, last), every row [full_first, full_last).
struct tile_hull {
  int first, last, full_first, full_last;
};
/// The tiles of rows, from `from` on and before `until`, that may see a tile of keys.
struct row_range {
  int from, until;
};

/// The saved states of rows, as exec/states.hpp lays them out.
struct saved_numbers {
  float const *reference = nullptr, *earned = nullptr, *ground = nullptr, *acc = nullptr, *second = nullptr;
};

/// The numbers of a row that what follows its value sum needs.
struct row_end {
  float value_factor, share, ground_weight;
};

/// The cotangents of a call.
template <class E>
struct row_cotangents {
  tensor<E const> out;
  tensor<float const> lse = {}, ground_weight = {};
};

/// The cotangents of an operator's outputs.
template <class Op, class E>
row_cotangents<E> cotangents_of(cotangents<Op, tensor<E const>> const& d) {
  row_cotangents<E> by{d.out};
  if constexpr (Op::has_lse) by.lse = d.lse;
  if constexpr (Op::has_ground_weight) by.ground_weight = d.ground_weight;
  return by;
}
/// The saved states that a VJP reads.
template <class Rows>
saved_numbers numbers_of(Rows const& rows) {
  return {rows.reference.data(), rows.earned.data(), rows.ground.data(), rows.acc.data(), rows.second.data()};
}

template <class Op, class E>
struct gradient_call {
  static constexpr int parameters = parameter_count<Op>;
  static constexpr int products = tile_facts<Op>::products == 0 ? 1 : tile_facts<Op>::products;
  static constexpr int key_numbers = numbers_in<operand_side::key, typename Op::contractions>,
                       query_numbers = numbers_in<operand_side::query, typename Op::contractions>,
                       pair_numbers = numbers_in<operand_side::pair, typename Op::contractions>;
  forward_call<Op, E> forward;                    ///< its plan is of the tiles of queries
  tensor<E const> d_out = {};                     ///< cotangents; absent: 0
  tensor<float const> d_lse = {}, d_ground = {};  ///< by lse and by the ground weight
  operand_of<E> d_rows = {};                      ///< rows of d_out
  saved_numbers saved = {};
  pair_record<Op>* pairs = nullptr;  ///< B, groups, row tiles x rows of a tile; rows past the last see no key
  /// Of split rows that tiles of keys stream, in the order of a tile: B, groups, row tiles, operands (queries of every
  /// product, then d_out), rows of a tile.
  float* row_factors = nullptr;
  int row_tiles = 0, key_tiles = 0;  ///< of the tiles of keys: tiles of rows that they stream, and of keys
  int rows_each = 0, keys_each = 0;  ///< and their extents
  tile_hull* hulls = nullptr;        ///< B, groups, row tiles; of interval masks
  int* classes = nullptr;            ///< B, groups, row tiles, key tiles; of other masks
  row_range* ranges = nullptr;       ///< B, groups, key tiles
  int* infinite_keys = nullptr;      ///< B, tiles of keys that tiles of queries stream: 1 if one has an infinity
  int* infinite_rows = nullptr;      ///< B, row tiles: the same of the queries that tiles of keys stream
  row_target<E> by_query[products] = {}, by_key[products] = {}, by_value = {};  ///< by operands of products, and by v
  row_target<E> by_key_number[key_numbers + 1] = {}, by_query_number[query_numbers + 1] = {};  ///< by numbers
  pair_target<E> by_pair[pair_numbers + 1] = {};                                               ///< by numbers of pairs
  int shared_batches = 1, shared_groups = 1;  ///< a block owns the pairs of so many batch elements and groups
  float *by_member = nullptr,                 ///< B H Lq x member_sums<Op>::size
      *by_parameter = nullptr;                ///< B H Lq x parameters
  row_end* ends = nullptr;                    ///< B H Lq

  /// Blocks of tiles of keys, and the tile that block n computes.
  ATTUNE_HD index_t key_blocks() const { return forward.p.batch * forward.groups * key_tiles; }
  ATTUNE_HD block_place key_block(index_t n) const {
    index_t const pair = n / key_tiles;
    return {int(pair / forward.groups), int(pair % forward.groups), int(n % key_tiles)};
  }
  /// Blocks of tiles of queries, and the tile that block n computes as number s of shared_batches x shared_groups.
  ATTUNE_HD index_t query_blocks() const {
    return forward.p.batch / shared_batches * (forward.groups / shared_groups) * forward.row_tiles;
  }
  ATTUNE_HD block_place query_block(index_t n, int s) const {
    index_t const groups = forward.groups / shared_groups, pair = n / forward.row_tiles;
    return {int(pair / groups) * shared_batches + s / shared_groups,
            int(pair % groups) * shared_groups + s % shared_groups, forward.row_tiles - 1 - int(n % forward.row_tiles)};
  }

  /// The factor of the row of d_out; 1 without d_out.
  ATTUNE_HD float factor_of_d_out(index_t b, group_row const& at) const {
    if constexpr (tile_format<E>::split)
      return d_rows.factors == nullptr ? 1.f : d_rows.factors_of(b, at.head)[split_operand::place(at.query)];
    else
      return 1.f;
  }
  /// Whether a tile of keys, or of rows, has an infinity. Floats know it by their factors.
  ATTUNE_HD bool has_infinite_key(index_t b, int tile) const {
    return !tile_format<E>::split && infinite_keys[b * forward.key_tiles + tile] != 0;
  }
  ATTUNE_HD bool has_infinite_row(index_t b, int tile) const {
    return !tile_format<E>::split && infinite_rows[b * row_tiles + tile] != 0;
  }
  /// Row n of a group, among the records of pairs.
  ATTUNE_HD index_t pair_number(index_t b, int group, int n) const {
    return (b * forward.groups + group) * (index_t(row_tiles) * rows_each) + n;
  }
  /// 0, 1 or 2: no row, some row or every row of tile t of rows sees the keys of a tile. at: its number among the tiles
  /// of all groups.
  ATTUNE_HD int class_of(index_t at, int t, int key_tile) const {
    if constexpr (Op::mask_policy::form == mask_form::interval) {
      tile_hull const x = hulls[at];
      int const first = key_tile * keys_each, whole = first + keys_each, keys = int(forward.p.keys),
                last = whole < keys ? whole : keys;
      if (x.first >= last || x.last <= first) return 0;
      return x.full_first <= first && last <= x.full_last ? 2 : 1;
    } else {
      int const c = classes[at * key_tiles + key_tile];
      return c == 2 && (t + 1) * rows_each > forward.rows ? 1 : c;  // rows past the last see nothing
    }
  }
};

}  // namespace attune::exec_cuda
