// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   to[key][query] = table[row of the pair]
//
// A number for each pair, looked up in a table: contraction::PairLookup, and contraction::gathered in decode.
#pragma once

#include <algorithm>

#include <attune/exec/cpu/contraction/term.hpp>

namespace attune::exec_cpu {

namespace detail {

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

template <contraction::PairLookup C, class T, class Arch>
struct contractor<C, T, Arch> : unpacked_contractor<T> {
  template <class In, class Owner>
  static void run(T* to, no_memory const&, In const&, Owner const& owner, tile_place const& at,
                  key_block_place const& block, no_memory const&) {
    detail::look_up_pairs<typename C::x, T, Arch>(to, &C::x::table_of::of(owner), owner, at, block);
  }
};

/// Adds the gradient of each pair to the number that the pair reads. Pairs without gradient are not looked up.
template <contraction::PairLookup C, class T, class Arch>
struct contraction_vjp<C, T, Arch> : unprepared_vjp<T> {
  template <class Tile, class In, class Owner>
  static void pull(T const* ds, Tile const& t, In const&, Owner const& owner, key_block_place const& b,
                   no_memory const&, gradient_sinks<T>& to) {
    constexpr int queries = tiling<T, Arch>::queries;
    gradient_array<double>& table = to.sum_of(C::x::table_of::of(owner));
    for (index_t j = 0; j < b.n; ++j)
      for (index_t l = 0; l < t.count; ++l) {
        T const move = ds[j * queries + l];
        if (move == T(0)) continue;
        index_t const row = attune::detail::pair_row<typename C::x>(
            owner, t.place.first + l + t.place.p->offset_of(t.place.b), b.first + j);
        if (row >= 0) table(0, 0, row, 0) += double(move);
      }
  }
};

/// The number of the table's direction that each pair reads.
template <contraction::PairLookup C, class T, class Arch>
struct contraction_jvp<C, T, Arch> : unpacked_jvp<T> {
  template <class Packed, class Call, class Owner>
  static void run(T* to, no_memory const&, Packed const&, Call const& c, Owner const& owner, tile_place const& at,
                  key_block_place const& b, no_memory const&) {
    using operand = typename C::x;
    detail::look_up_pairs<operand, T, Arch>(to, c.table_of(operand::table_of::of(owner)), owner, at, b);
  }
};

namespace detail {

/// In decode: a row of the table is looked up once for all heads of a query. row_of(position of the query, key): -1 if
/// the table has none.
template <class T, class Arch, class RowOf>
void look_up_rows(T* to, table const& x, decode_place const& at, key_block_place const& block, RowOf const& row_of) {
  index_t entry[decode_tiling<T, Arch>::block], query = -1;
  fill_pairs<T, Arch>(to, at, block.n, [&](index_t r) {
    if (index_t const i = at.query_of(r); i != query) {
      query = i;
      for (index_t j = 0; j < block.n; ++j) entry[j] = row_of(query + at.p->offset_of(at.b), block.first + j);
    }
    return [&, h = at.head_of(r)](index_t j) { return entry[j] < 0 ? T(0) : T(x(at.b, h, entry[j], 0)); };
  });
}

}  // namespace detail

template <contraction::PairLookup C, class T, class Arch>
struct decode_contractor<C, T, Arch> : detail::unpacked_decode_contractor {
  template <class In, class Owner>
  static void run(T* to, no_memory const&, In const&, Owner const& owner, decode_place const& at,
                  key_block_place const& block, no_memory const&) {
    detail::look_up_rows<T, Arch>(to, C::x::table_of::of(owner), at, block, [&](index_t i, index_t j) {
      return attune::detail::pair_row<typename C::x>(owner, i, j);
    });
  }
};
template <class T, class Arch>
struct decode_contractor<contraction::gathered, T, Arch> : detail::unpacked_decode_contractor {
  template <class In, class Owner>
  static void run(T* to, no_memory const&, In const&, Owner const& owner, decode_place const& at,
                  key_block_place const& block, no_memory const&) {
    detail::look_up_rows<T, Arch>(to, owner.values, at, block,
                                  [&](index_t i, index_t j) { return owner.index(i - j); });
  }
};

}  // namespace attune::exec_cpu
