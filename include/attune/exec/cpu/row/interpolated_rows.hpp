// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   z = (1 - f) z[n] + f z[n + 1]      ->      dy += (z[n + 1] - z[n]) dz,   dz[n] += (1 - f) dz,   dz[n + 1] += f dz
//
// Gradients and tangents of rows that are read at an index (policies/interpolated.hpp).
#pragma once

#include <algorithm>

#include <attune/core/dual.hpp>
#include <attune/exec/cpu/products/row_entries.hpp>
#include <attune/exec/cpu/row/contract.hpp>

namespace attune::exec_cpu {

/// The rows of a tile, [entry][query].
template <class T, class Arch>
struct entries_of_tile {
  T* entries;
  entries_of_tile(arena<T>& from, problem_shape const& p)
      : entries(from.take(packed_rows_size<T, Arch>(p.positions))) {}
};

/// The numbers of a row are packed once per tile. `read_rows` below reads them.
template <class C, class T, class Arch>
  requires contraction::is_interpolated<C>
struct contractor<C, T, Arch> {
  using packed = entries_of_tile<T, Arch>;
  using copies = no_memory;
  template <class In, class Owner>
  static void pack(packed const& to, In const& in, Owner const&, tile_place const& at) {
    pack_rows<T, Arch>(to.entries, attune::detail::spread_over(member<C::of>(in), at.p->rows(1)), at.b, at.h, at.first,
                       at.p->first_query);
  }
  template <class... Any>
  static void run(T*, Any const&...) {}
};
/// The gradients of the rows of a tile accumulate as the rows are packed. `pull_read_rows` adds to them.
template <class C, class T, class Arch>
  requires contraction::is_interpolated<C>
struct contraction_vjp<C, T, Arch> : unprepared_vjp<T> {
  using grown = entries_of_tile<T, Arch>;
  template <class Tile, class In, class Owner>
  static void begin(Tile const& t, In const&, Owner const&) {
    std::fill_n(t.grown.entries, packed_rows_size<T, Arch>(t.place.p->positions), T(0));
  }
  template <class Tile, class In, class Owner>
  static void pull(T const*, Tile const&, In const&, Owner const&, key_block_place const&, no_memory const&,
                   gradient_sinks<T>&) {}
  template <class Tile, class In, class Owner>
  static void end(Tile const& t, In const&, Owner const&, gradient_sinks<T>& to) {
    tile_place const& at = t.place;
    gradient_array<double>* const shared = to.shared(C::of);
    for (index_t l = 0; l < t.count; ++l)
      for (index_t e = 0; e < at.p->positions; ++e) {
        T const x = t.grown.entries[e * tiling<T, Arch>::queries + l];
        if (shared != nullptr)
          (*shared)(0, 0, at.first + l - to.first, e) += double(x);
        else if (to.takes(C::of))
          to.to->of(C::of)(at.b, at.h, at.first + l, e) += x;
      }
  }
};
/// The directions of the rows, packed as the rows; 0 if they are constant. The tile computes the tangents from them.
template <class C, class T, class Arch>
  requires contraction::is_interpolated<C>
struct contraction_jvp<C, T, Arch> {
  using moved = entries_of_tile<T, Arch>;
  using scratch = no_memory;
  template <class Call, class Owner>
  static void pack(moved const& to, Call const& c, Owner const&, tile_place const& at) {
    auto const& along = member<C::of>(c.along);
    if (along.absent())
      std::fill_n(to.entries, packed_rows_size<T, Arch>(at.p->positions), T(0));
    else
      pack_rows<T, Arch>(to.entries, attune::detail::spread_over(along, at.p->rows(1)), at.b, at.h, at.first);
  }
  template <class... Any>
  static void run(T*, Any const&...) {}
};

/// The buffer of the sum at which interpolated row `number` is read.
template <class T, class Arch, class Op>
constexpr index_t index_buffer(int number) {
  return contraction::index_number<typename Op::contractions>(number) * tile_types<T, Arch, Op>::pair_buffer;
}
/// Reads the rows of a tile at the ordered sums of a block of n keys.
template <class Products = full_products, class T, class Arch, class Op>
void read_rows(tile_rows<T, Arch, Op> const& tile, T* pairs, index_t n) {
  each_contraction<Products>(tile, [&](auto c, auto const&, auto const& own, auto number) {
    if constexpr (contraction::is_interpolated<decltype(c)>)
      read_rows<T, Arch>(own.entries, tile.p->positions, pairs + index_buffer<T, Arch, Op>(number),
                         pairs + number * tile_types<T, Arch, Op>::pair_buffer, n);
  });
}

/// Memory of a block: the indices and the slopes of each interpolated row.
template <class T, class Arch, class Op>
struct interpolated_block_memory {
  T* read;
  explicit interpolated_block_memory(arena<T>& from)
      : read(from.take(2 * contraction::interpolated_count<typename Op::contractions> *
                       tile_types<T, Arch, Op>::pair_buffer)) {}
};

/// Reads the rows of a tile at the ordered sums of a block of n keys. Keeps the indices and the slopes in `read`.
template <class Products = full_products, class T, class Arch, class Op>
void read_rows_and_slopes(tile_rows<T, Arch, Op> const& tile, T* pairs, index_t n, T* read) {
  constexpr index_t buffer = tile_types<T, Arch, Op>::pair_buffer, queries = tile_types<T, Arch, Op>::queries;
  each_contraction<Products>(tile, [&](auto c, auto const&, auto const& own, auto number) {
    if constexpr (contraction::is_interpolated<decltype(c)>) {
      std::copy_n(pairs + index_buffer<T, Arch, Op>(number), n * queries, read);
      read_rows<T, Arch>(own.entries, tile.p->positions, read, pairs + number * buffer, read + buffer, n);
      read += 2 * buffer;
    }
  });
}
/// Passes the gradients `by_row` of what n keys read to the indices and to the rows. `read`: of read_rows_and_slopes.
/// `grown`: the gradients of the rows.
template <class T, class Arch>
ATTUNE_NOINLINE void pull_read_rows(T const* by_row, T* by_index, T const* read, index_t n, index_t entries, T* grown) {
  using tile = tiling<T, Arch>;
  using batch = typename tile::batch;
  using place = lane_entries<T, Arch>;
  batch const zero(T(0)), last = batch(T(entries - 1));
  T const* const slopes = read + padded<T>(tile::key_block * tile::queries);
  alignas(64) typename place::integer at[tile::lanes];
  alignas(64) T lower[tile::lanes], upper[tile::lanes];
  for (index_t j = 0; j < n; ++j)
    for (int v = 0; v < tile::vectors; ++v) {
      index_t const here = j * tile::queries + v * tile::lanes;
      batch const by = batch::load_aligned(by_row + here);
      if (simd::all(by == zero)) continue;
      batch const sum =
          batch::load_aligned(by_index + here) + attune::detail::chained(by, batch::load_aligned(slopes + here));
      sum.store_aligned(by_index + here);
      place const entry(batch::load_aligned(read + here), last, v);
      entry.at.store_aligned(at);
      attune::detail::chained(by, batch(batch(T(1)) - entry.fraction)).store_aligned(lower);
      attune::detail::chained(by, entry.fraction).store_aligned(upper);
      for (int l = 0; l < tile::lanes; ++l) {
        T* const to = grown + at[l];
        to[0] += lower[l];
        to[tile::queries] += upper[l];
      }
    }
}

/// The tangents of what a row reads at the indices of n keys, which move too. `along`: the direction of the row.
template <class T, class Arch>
ATTUNE_NOINLINE void read_moving_rows(T const* rows, T const* along, index_t entries, T const* index,
                                      T const* index_along, T* to, T* to_along, index_t n) {
  using tile = tiling<T, Arch>;
  using batch = typename tile::batch;
  batch const last = batch(T(entries - 1));
  for (index_t j = 0; j < n; ++j)
    for (int v = 0; v < tile::vectors; ++v) {
      index_t const here = j * tile::queries + v * tile::lanes;
      lane_entries<T, Arch> const entry(batch::load_aligned(index + here), last, v);
      batch slope;
      entry.read(rows, slope).store_aligned(to + here);
      batch const moved = attune::detail::chained(batch::load_aligned(index_along + here), slope) + entry.read(along);
      moved.store_aligned(to_along + here);
    }
}

}  // namespace attune::exec_cpu
