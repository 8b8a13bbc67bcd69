// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   to[key][query] = table(row(i + offset, j), 0)
//
// Tables with a row for each pair, in a tile. The row of a pair is computed once, not once per feature. Pairs that no
// query sees may have no row: they read 0.
#pragma once

#include <algorithm>

#include <attune/exec/cpu/tile/operands.hpp>

namespace attune::exec_cpu {

namespace detail {

/// The rows of the pairs of one key with the queries of a tile; -1 where the table has none.
template <class Operand, int Queries, class Owner>
void rows_of_key(index_t* to, Owner const& owner, tile_place const& at, index_t key) {
  for (index_t l = 0; l < Queries; ++l)
    to[l] = attune::detail::pair_row<Operand>(owner,
                                              (std::min)(at.first + l, at.p->queries - 1) + at.p->offset_of(at.b), key);
}

/// Calls use(address of row 0, distance between rows) with the numbers of column 0 of a table.
template <class Use>
void with_column(table const& x, index_t b, index_t h, Use const& use) {
  stored_view const& view = x.view();
  strides const s = view.steps();
  index_t const first = b * s.batch + h * s.head;
  if (view.doubles() != nullptr)
    use(view.doubles() + first, s.position);
  else
    use(view.floats() + first, s.position);
}

/// Column 0 of `x` at the row of each pair of a block; 0 everywhere if x is null.
template <class Operand, class T, class Arch, class Owner>
void look_up_pairs(T* to, table const* x, Owner const& owner, tile_place const& at, key_block_place const& block) {
  constexpr int queries = tiling<T, Arch>::queries;
  if (x == nullptr) {
    std::fill_n(to, block.n * queries, T(0));
    return;
  }
  detail::with_column(*x, at.b, at.h, [&](auto const* from, index_t step) {
    for (index_t j = 0; j < block.n; ++j) {
      index_t rows[queries];
      rows_of_key<Operand, queries>(rows, owner, at, block.first + j);
      for (index_t l = 0; l < queries; ++l)
        to[j * queries + l] = rows[l] < 0 ? T(0) : T(from[(std::max)(rows[l], index_t(0)) * step]);
    }
  });
}

}  // namespace detail

/// An operand with a row of features for each pair. The scratch of a block holds the row of each pair.
template <class Table, class T, class Arch>
class tile_operand<contraction::by_pair<Table>, T, Arch> {
  using operand = contraction::by_pair<Table>;
  using tile = tiling<T, Arch>;
  using batch = typename tile::batch;

 public:
  static index_t resident(index_t) { return 0; }
  static index_t rows(index_t) {
    constexpr index_t bytes = tile::queries * tile::key_block * index_t(sizeof(index_t));
    return padded<T>((bytes + index_t(sizeof(T)) - 1) / index_t(sizeof(T)));
  }
  template <class Source, class Owner>
  static void pack(T*, Source const&, Owner const&, tile_place const&, index_t) {}

  template <class Source, class Owner>
  tile_operand(T const*, T* scratch, Source const& from, Owner const& owner, tile_place const& at,
               key_block_place const& block, index_t)
      : rows_(reinterpret_cast<index_t*>(scratch)), table_(from.table_of(Table::of(owner))), b_(at.b), h_(at.h) {
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

}  // namespace attune::exec_cpu
