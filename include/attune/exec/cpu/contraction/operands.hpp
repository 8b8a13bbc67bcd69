// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   x(j, v, d)      operand x of key j, for vector v of the queries of a tile, at feature d
//
// The operands that the term of a contraction reads in a tile, for every side. They are packed once per tile, copied
// once per block of keys, or read in place.
#pragma once

#include <algorithm>

#include <attune/exec/cpu/contraction/place.hpp>
#include <attune/exec/cpu/products/microkernel.hpp>
#include <attune/exec/cpu/products/pack.hpp>

namespace attune::exec_cpu {

/// One operand in a tile. Operands that the source does not have are 0.
template <class Operand, class T, class Arch>
class tile_operand {
  using tile = tiling<T, Arch>;
  using batch = typename tile::batch;
  static constexpr operand_side side = Operand::side;
  static constexpr bool in_column = [] {
    if constexpr (side == operand_side::table) return Operand::place == table_place::column;
    return false;
  }();
  static constexpr bool by_distance = [] {
    if constexpr (side == operand_side::table) return Operand::place == table_place::of_distance;
    return false;
  }();
  static constexpr bool by_key = [] {
    if constexpr (side == operand_side::table) return Operand::place == table_place::of_key;
    return false;
  }();
  static constexpr index_t distances = padded<T>(detail::distances_of_block<T, Arch>);
  static constexpr index_t packed_columns = side == operand_side::query ? tile::queries : in_column ? 1 : 0;
  static constexpr index_t copied_columns = by_distance ? distances : by_key ? tile::key_block : 0;

 public:
  /// Memory of a tile: the numbers of its queries, or a row of a table.
  struct packed {
    T* data;
    packed(arena<T>& from, index_t width) : data(from.take(packed_columns * width)) {}
  };
  /// Memory of a block: the numbers of its pairs, or rows of a table.
  struct copies {
    T* data;
    copies(arena<T>& from, index_t width)
        : data(from.take(side == operand_side::pair ? tile::queries * tile::key_block : copied_columns * width)) {}
  };

  template <class Source, class Owner>
  static void pack(packed const& memory, [[maybe_unused]] Source const& from, [[maybe_unused]] Owner const& owner,
                   [[maybe_unused]] tile_place const& at, index_t width) {
    T* const to = memory.data;
    std::fill_n(to, packed_columns * width, T(0));
    if constexpr (side == operand_side::query) {
      auto const& x = from.template tensor_of<Operand::of>();
      if (!x.absent()) pack_queries<tile::queries>(to, x, at.b, at.h, at.first, at.p->first_query);
    } else if constexpr (in_column) {
      if (table const* const x = from.table_of(Operand::table_of::of(owner)))
        for (index_t d = 0; d < width; ++d) to[d] = T((*x)(at.b, at.h, 0, d));
    }
  }

  /// The operand for a block.
  template <class Source, class Owner>
  tile_operand(packed const& own, copies const& memory, [[maybe_unused]] Source const& from,
               [[maybe_unused]] Owner const& owner, [[maybe_unused]] tile_place const& at,
               [[maybe_unused]] key_block_place const& block, [[maybe_unused]] index_t width)
      : data_(own.data) {
    [[maybe_unused]] T* const scratch = memory.data;
    if constexpr (side == operand_side::key) {
      tensor<T const> const& x = from.template tensor_of<Operand::of>();
      data_ = x.absent() ? nullptr : x.row(at.b, at.p->group(at.h, at.p->heads_of(Operand::of)), block.first);
      key_step_ = x.steps().position;
      step_ = x.steps().feature;
    } else if constexpr (side == operand_side::pair) {
      data_ = scratch;
      auto const& x = from.template tensor_of<Operand::of>();
      if (x.absent())
        std::fill_n(scratch, block.n * tile::queries, T(0));
      else
        pack_pairs<tile::queries>(scratch, attune::detail::spread_over(x, at.p->rows(at.p->keys)), at.b, at.h, at.first,
                                  block.first, block.n, at.p->first_query);
    } else if constexpr (by_distance) {
      table const* const x = from.table_of(Operand::table_of::of(owner));
      index_t const first = detail::first_distance(at, block), farthest = detail::farthest_distance(at);
      for (index_t n = 0; n < tile::queries + block.n - 1; ++n) {
        index_t const row = Operand::table_of::row(owner, (std::min)(first + n, farthest));
        for (index_t d = 0; d < width; ++d)
          scratch[d * distances + n] = x != nullptr ? T((*x)(at.b, at.h, row, d)) : T(0);
      }
      data_ = scratch + block.n - 1;
    } else if constexpr (by_key) {
      table const* const x = from.table_of(Operand::table_of::of(owner));
      for (index_t j = 0; j < block.n; ++j)
        for (index_t d = 0; d < width; ++d)
          scratch[j * width + d] = x != nullptr ? T((*x)(at.b, at.h, block.first + j, d)) : T(0);
      data_ = scratch;
      key_step_ = width;
    }
  }

  ATTUNE_INLINE batch operator()([[maybe_unused]] index_t j, [[maybe_unused]] int v, [[maybe_unused]] index_t d) const {
    if constexpr (side == operand_side::query)
      return batch::load_aligned(data_ + d * tile::queries + v * tile::lanes);
    else if constexpr (side == operand_side::key)
      return data_ != nullptr ? batch(data_[j * key_step_ + d * step_]) : batch(T(0));
    else if constexpr (side == operand_side::pair)
      return batch::load_aligned(data_ + j * tile::queries + v * tile::lanes);
    else if constexpr (in_column)
      return batch(data_[d]);
    else if constexpr (by_distance)
      return batch::load_unaligned(data_ + d * distances - j + v * tile::lanes);
    else if constexpr (by_key)
      return batch(data_[j * key_step_ + d]);
    else
      return batch(T(0));
  }

 private:
  T const* data_;
  index_t key_step_ = 0, step_ = 0;
};

// Tables with a row for each pair. The row of a pair is computed once, not once per feature. Pairs that no query sees
// may have no row: they read 0.

namespace detail {

/// The rows of the pairs of one key with the queries of a tile; -1 where the table has none.
template <class Operand, int Queries, class Owner>
void rows_of_key(index_t* to, Owner const& owner, tile_place const& at, index_t key) {
  for (index_t l = 0; l < Queries; ++l)
    to[l] = attune::detail::pair_row<Operand>(
        owner, (std::min)(at.first + l, at.p->whole_queries() - 1) + at.p->offset_of(at.b), key);
}

}  // namespace detail

/// An operand with a row of features for each pair. The scratch of a block holds the row of each pair.
template <class Table, class T, class Arch>
class tile_operand<contraction::by_pair<Table>, T, Arch> {
  using operand = contraction::by_pair<Table>;
  using tile = tiling<T, Arch>;
  using batch = typename tile::batch;

 public:
  using packed = no_memory;
  struct copies {
    index_t* rows;
    copies(arena<T>& from, index_t) : rows(take_numbers<index_t>(from, tile::queries * tile::key_block)) {}
  };
  template <class Source, class Owner>
  static void pack(packed const&, Source const&, Owner const&, tile_place const&, index_t) {}

  template <class Source, class Owner>
  tile_operand(packed const&, copies const& memory, Source const& from, Owner const& owner, tile_place const& at,
               key_block_place const& block, index_t)
      : rows_(memory.rows), table_(from.table_of(Table::of(owner))), b_(at.b), h_(at.h) {
    for (index_t j = 0; j < block.n; ++j)
      detail::rows_of_key<operand, tile::queries>(rows_ + j * tile::queries, owner, at, block.first + j);
  }

  /// The row that lane l reads for key j of the block; -1 if there is none.
  index_t row(index_t j, index_t l) const { return rows_[j * tile::queries + l]; }
  batch operator()(index_t j, int v, index_t d) const {
    alignas(64) T lane[tile::lanes];
    for (int l = 0; l < tile::lanes; ++l) {
      index_t const at = row(j, v * tile::lanes + l);
      lane[l] = at < 0 || table_ == nullptr ? T(0) : T((*table_)(b_, h_, at, d));
    }
    return batch::load_aligned(lane);
  }

 private:
  index_t* rows_;
  table const* table_;
  index_t b_, h_;
};

/// The operands of a contraction that reads tensors.
template <class C, class T, class Arch>
struct tile_operands {
  using tile = tiling<T, Arch>;
  using batch = typename tile::batch;
  template <int N>
  using operand = tile_operand<contraction::operand_of<C, N>, T, Arch>;

  struct packed {
    typename operand<0>::packed x;
    typename operand<1>::packed y;
    typename operand<2>::packed z;
    packed(arena<T>& from, problem_shape const& p) : packed(from, attune::detail::term_count<C>(p)) {}

   private:
    packed(arena<T>& from, index_t width) : x(from, width), y(from, width), z(from, width) {}
  };
  struct copies {
    typename operand<0>::copies x;
    typename operand<1>::copies y;
    typename operand<2>::copies z;
    copies(arena<T>& from, problem_shape const& p) : copies(from, attune::detail::term_count<C>(p)) {}

   private:
    copies(arena<T>& from, index_t width) : x(from, width), y(from, width), z(from, width) {}
  };
  template <class Source, class Owner>
  static void pack(packed const& to, Source const& from, Owner const& owner, tile_place const& at) {
    index_t const width = attune::detail::term_count<C>(*at.p);
    operand<0>::pack(to.x, from, owner, at, width);
    operand<1>::pack(to.y, from, owner, at, width);
    operand<2>::pack(to.z, from, owner, at, width);
  }

  template <class Source, class Owner>
  tile_operands(packed const& own, copies const& memory, Source const& from, Owner const& owner, tile_place const& at,
                key_block_place const& block)
      : width(attune::detail::term_count<C>(*at.p)), x(own.x, memory.x, from, owner, at, block, width),
        y(own.y, memory.y, from, owner, at, block, width), z(own.z, memory.z, from, owner, at, block, width),
        first_distance_(at.first + at.p->offset_of(at.b) - block.first) {}

  /// i + offset - j
  ATTUNE_INLINE batch distance(index_t j, int v) const {
    alignas(64) T lane[tile::lanes];
    for (int l = 0; l < tile::lanes; ++l) lane[l] = T(first_distance_ - j + v * tile::lanes + l);
    return batch::load_aligned(lane);
  }

  /// Operand number N.
  template <int N>
  auto const& at() const {
    if constexpr (N == 0)
      return x;
    else if constexpr (N == 1)
      return y;
    else
      return z;
  }

  index_t width;  ///< the number of terms
  operand<0> x;
  operand<1> y;
  operand<2> z;

 private:
  index_t first_distance_;
};

}  // namespace attune::exec_cpu
