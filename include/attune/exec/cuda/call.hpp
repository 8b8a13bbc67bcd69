// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Numbers and pointers that the programs of a call read; copied to where they run.
#pragma once

#include <cstdint>

#include <attune/exec/cuda/facts.hpp>

namespace attune::exec_cuda {

/// Rows of 16-bit features in global memory, each row contiguous, 16-byte aligned and a multiple of 8 features.
struct operand {
  unsigned char const* data = nullptr;
  std::int64_t batch = 0, head = 0, position = 0;  ///< steps, in bytes
  int heads = 1;                                   ///< heads of the tensor
  int chunks = 0;                                  ///< features / 8
  std::int64_t hop = 0;                            ///< step of as many rows as a block copies at once, in bytes
  ATTUNE_HD unsigned char const* rows(index_t b, index_t h) const { return data + b * batch + h * head; }
};

/// How tiles multiply numbers of E. Numbers of 16 bits are multiplied as they are.
template <class E>
struct tile_format {
  using number = E;                     ///< the type of products
  using scalar = fast_float;            ///< policies run on it
  static constexpr bool split = false;  ///< numbers are sums of two
  static constexpr int planes = 1;      ///< copies of a row in shared memory
};
/// A float is a sum of two fp16, times the power of two of its row.
template <>
struct tile_format<float> {
  using number = float16;
  using scalar = float;
  static constexpr bool split = true;
  static constexpr int planes = 2;
};

/// Factors of values are 2^14 times larger, so that the product of a weight and a factor is subnormal only where
/// the product of the weight and the largest value is.
inline constexpr float value_unit = 0x1p14f;

/// Rows of floats as sums of two numbers of 16 bits: (first + second) factor.
struct split_operand : operand {
  std::int64_t plane = 0;          ///< from the first numbers to the second, in bytes
  float const* factors = nullptr;  ///< of the rows, in the order of place(); negative where a number is not finite
  index_t row_factors = 0;         ///< factors of a head: its rows, and more up to a multiple of 64
  /// Where the factor of row n is: four numbers that a lane needs lie together.
  ATTUNE_HD static index_t place(index_t n) { return n / 16 * 16 + n % 8 / 2 * 4 + n % 16 / 8 * 2 + n % 2; }
  /// The factors of a head's rows.
  ATTUNE_HD float const* factors_of(index_t b, index_t h) const { return factors + (b * heads + h) * row_factors; }
};
template <class E>
using operand_of = std::conditional_t<tile_format<E>::split, split_operand, operand>;

/// A row, bound before the tiles run.
template <class Op>
struct row_record {
  bound_operator<Op, float> bound;  ///< the operator, bound to the row in float
  float visible, reference;         ///< K; the reference before any key
  float slope, level;               ///< logit = slope s + level, of affine operators
  int first, last;                  ///< the hull of the keys that the row sees
};

/// The key tiles of a tile of rows, as numbers: partial ones first.
struct tile_plan {
  int partial = 0, full = 0;           ///< how many; a list has their numbers
  int from = 0, until = 0, after = 0;  ///< interval masks: partial [from, until) and [after, ..), full [until, after)
};

/// Whether two adjacent numbers of a tensor fit one store: at even features.
template <class E>
bool stores_two(tensor<E> const& x) {
  shape const e = x.extents();
  strides const s = x.steps();
  return s.feature == 1 && e.feature % 2 == 0 && s.position % 2 == 0 && s.head % 2 == 0 && s.batch % 2 == 0 &&
         reinterpret_cast<std::uintptr_t>(x.data()) % (2 * sizeof(E)) == 0;
}
/// Two numbers in one store.
template <class E>
ATTUNE_HD ATTUNE_INLINE void store_two(E* to, float x, float y) {
  using word = std::conditional_t<sizeof(E) == 4, std::uint64_t, std::uint32_t>;
  word both;
  if constexpr (sizeof(E) == 4)
    both = __builtin_bit_cast(std::uint32_t, x) | word(__builtin_bit_cast(std::uint32_t, y)) << 32;
  else
    both = E(x).bits | word(E(y).bits) << 16;
#if defined(__CUDA_ARCH__)
  *reinterpret_cast<word*>(to) = both;
#else
  __builtin_memcpy(static_cast<void*>(to), &both, sizeof both);
#endif
}

/// Which tile of rows, or of keys, a block computes.
struct block_place {
  int batch, group, tile;
};

/// Where a call saves the states of its rows, as exec/states.hpp lays them out; all null if it does not.
struct saved_arrays {
  float *reference = nullptr, *earned = nullptr, *ground = nullptr, *lowest = nullptr, *acc = nullptr,
        *second = nullptr;
};

template <class Op, class E>
struct forward_call {
  static constexpr int products = tile_facts<Op>::products;
  Op op;
  problem_shape p;
  inputs<Op, tensor<E const>> in;
  outputs<Op, E> to;
  saved_arrays saved = {};
  operand_of<E> query[products == 0 ? 1 : products] = {}, key[products == 0 ? 1 : products] = {}, value = {};
  float const* query_norm = nullptr;           ///< of distances: B H Lq
  float const* key_norm = nullptr;             ///< B H Lk: a metric may differ by query head
  row_record<Op>* records = nullptr;           ///< B H Lq
  tile_plan* plans = nullptr;                  ///< B, list groups, row tiles
  int* lists = nullptr;                        ///< B, list groups, row tiles, key tiles; of masks that are no intervals
  int pack = 1, groups = 1;                    ///< query heads of a group; groups of a batch element: H / pack
  int rows = 0, row_tiles = 0, key_tiles = 0;  ///< rows of a group; its tiles
  int list_groups = 1;                         ///< groups that have lists: 1 if all heads see the same keys
  bool stores_pairs = false;                   ///< two features of the output fit one store

  ATTUNE_HD index_t row_number(index_t b, index_t h, index_t i) const { return (b * p.heads + h) * p.queries + i; }
  /// Blocks, and the tile of rows that block n computes: the last tiles, which may see most keys, first.
  ATTUNE_HD index_t blocks() const { return p.batch * groups * row_tiles; }
  ATTUNE_HD block_place block(index_t n) const {
    index_t const pair = n / row_tiles;
    return {int(pair / groups), int(pair % groups), row_tiles - 1 - int(n % row_tiles)};
  }
};

/// A row of a group: query n / pack of head n % pack of the group.
struct group_row {
  int head, query;
  ATTUNE_HD group_row(int n, int group, int pack) : head(group * pack + n % pack), query(n / pack) {}
};

}  // namespace attune::exec_cuda
