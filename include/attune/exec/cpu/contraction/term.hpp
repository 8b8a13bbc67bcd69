// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   to[key][query] = sum_d C::term(x_d, y_d, z_d)      for a tile of queries and a block of keys
//
// Any contraction, computed by its term: the numbers, and gradients and tangents from the term on dual numbers. The
// other files of the folder specialize these templates where faster code exists. Nothing here knows how scores are
// computed from the numbers.
#pragma once

#include <algorithm>
#include <type_traits>

#include <attune/core/dual.hpp>
#include <attune/exec/cpu/contraction/sinks.hpp>
#include <attune/exec/cpu/products/few_rows.hpp>

namespace attune::exec_cpu {

/// The numbers of a contraction. `pack` runs once per tile, `run` once per block. Reads tensors.
template <class C, class T, class Arch>
struct contractor {
  using tile = tiling<T, Arch>;
  using operands = tile_operands<C, T, Arch>;
  using packed = typename operands::packed;
  using copies = typename operands::copies;
  template <class In, class Owner>
  static void pack(packed const& to, In const& in, Owner const& owner, tile_place const& at) {
    operands::pack(to, given<In>{in}, owner, at);
  }
  template <class In, class Owner>
  static void run(T* to, packed const& own, In const& in, Owner const& owner, tile_place const& at,
                  key_block_place const& block, copies const& memory) {
    using batch = typename tile::batch;
    operands const of(own, memory, given<In>{in}, owner, at, block);
    for (index_t j = 0; j < block.n; ++j)
      for (int v = 0; v < tile::vectors; ++v) {
        batch const n = of.distance(j, v);
        batch sum(T(0));
        for (index_t d = 0; d < of.width; ++d) sum = sum + C::term(of.x(j, v, d), of.y(j, v, d), of.z(j, v, d), n);
        sum.store_aligned(to + j * tile::queries + v * tile::lanes);
      }
  }
};

/// A contraction that packs nothing.
template <class T>
struct unpacked_contractor {
  using packed = no_memory;
  using copies = no_memory;
  template <class In, class Owner>
  static void pack(packed const&, In const&, Owner const&, tile_place const&) {}
};

namespace detail {

/// Adds the gradients of a block of pairs, [key][query], to the gradients of an input with a number per pair. They are
/// added in the layout of the caller's tensor, and summed where the caller shares elements.
template <field F, class T, class Arch, class Tile>
void add_pairs(T const* ds, Tile const& t, key_block_place const& b, gradient_sinks<T>& to) {
  auto const add = [&](auto const& row_of) {
    for (index_t l = 0; l < t.count; ++l) {
      auto* const row = row_of(l);
      for (index_t j = 0; j < b.n; ++j) row[j] += ds[j * tiling<T, Arch>::queries + l];
    }
  };
  if (gradient_array<double>* const sums = to.shared(F))
    add([&](index_t l) { return &(*sums)(0, 0, t.place.first - to.first + l, b.first); });
  else if (to.takes(F))
    add([&](index_t l) { return &to.to->of(F)(t.place.b, t.place.h, t.place.first + l, b.first); });
}

}  // namespace detail

/// d<queries, keys, pairs, tables> += sum ds[key][query] d term. `begin` and `end` run once per tile, `pull` once per
/// block. `ds` is 0 in lanes past the last query and where a query does not see a key. Tile: vjp_tile.
template <class C, class T, class Arch>
struct contraction_vjp {
  using tile = tiling<T, Arch>;
  using operands = tile_operands<C, T, Arch>;
  using batch = typename tile::batch;
  /// Where the gradient of operand N accumulates. The gradient of a query, or of a table by_feature, accumulates in the
  /// tile's own numbers, [d][query]. The gradient of pairs accumulates in the numbers of a block, [key][query].
  template <int N>
  static constexpr bool in_tile = [] {
    using x = contraction::operand_of<C, N>;
    if constexpr (x::side == operand_side::table) return x::place == table_place::column;
    return x::side == operand_side::query;
  }();
  template <int N>
  static constexpr bool in_block = contraction::operand_of<C, N>::side == operand_side::pair;

  /// By operand; some have none.
  struct grown {
    T* of[3];
    grown(arena<T>& from, problem_shape const& p) : grown(from, tile::queries * attune::detail::term_count<C>(p)) {}

   private:
    grown(arena<T>& from, index_t size)
        : of{from.take(in_tile<0> * size), from.take(in_tile<1> * size), from.take(in_tile<2> * size)} {}
  };
  struct scratch {
    typename operands::copies copies;
    T* of[3];
    scratch(arena<T>& from, problem_shape const& p)
        : copies(from, p),
          of{from.take(in_block<0> * pairs), from.take(in_block<1> * pairs), from.take(in_block<2> * pairs)} {}

   private:
    static constexpr index_t pairs = tile::queries * tile::key_block;
  };

  template <class Tile, class In, class Owner>
  static void begin(Tile const& t, In const&, Owner const&) {
    index_t const width = attune::detail::term_count<C>(*t.place.p);
    for_each_operand<C>([&]<int N, class Operand>() {
      if constexpr (in_tile<N>) std::fill_n(t.grown.of[N], tile::queries * width, T(0));
    });
  }
  template <class Tile, class In, class Owner>
  static void pull(T const* ds, Tile const& t, In const& in, Owner const& owner, key_block_place const& b,
                   scratch const& memory, gradient_sinks<T>& to) {
    using D = dual<batch, C::operands>;
    operands const of(t.packed, memory.copies, given<In>{in}, owner, t.place, b);
    alignas(64) T moved[std::size_t(C::operands)][tile::queries];
    for_each_operand<C>([&]<int N, class Operand>() {
      if constexpr (in_block<N>) std::fill_n(memory.of[N], b.n * tile::queries, T(0));
    });
    for (index_t j = 0; j < b.n; ++j)
      for (index_t d = 0; d < of.width; ++d) {
        for (int v = 0; v < tile::vectors; ++v) {
          batch const w = batch::load_aligned(ds + j * tile::queries + v * tile::lanes);
          D x[3] = {of.x(j, v, d), of.y(j, v, d), of.z(j, v, d)};
          for (int n = 0; n < C::operands; ++n) x[n].tangent[n] = batch(T(1));
          D const term = C::term(x[0], x[1], x[2], D(of.distance(j, v)));
          for (int n = 0; n < C::operands; ++n)
            math::select(w == batch(T(0)), batch(T(0)), batch(w * term.tangent[n]))
                .store_aligned(moved[n] + v * tile::lanes);
        }
        for_each_operand<C>([&]<int N, class Operand>() {
          T const* const move = moved[N];
          if constexpr (in_tile<N> || in_block<N>) {
            T* const row = in_tile<N> ? t.grown.of[N] + d * tile::queries : memory.of[N] + j * tile::queries;
            for (index_t l = 0; l < tile::queries; ++l) row[l] += move[l];
          } else if constexpr (Operand::side == operand_side::key) {
            if (key_rows<T> const& rows = to.rows(Operand::of); rows.data != nullptr)
              rows.at(b.first + j)[d] += sum_of_lanes(move, t.count);
          } else {
            gradient_array<double>& table = to.sum_of(Operand::table_of::of(owner));
            if constexpr (Operand::place == table_place::of_key) {
              table(0, 0, b.first + j, d) += double(sum_of_lanes(move, t.count));
            } else if constexpr (contraction::is_by_pair<Operand>) {
              auto const& operand = of.template at<N>();
              for (index_t l = 0; l < t.count; ++l)
                if (index_t const row = operand.row(j, l); row >= 0) table(0, 0, row, d) += double(move[l]);
            } else {
              index_t const distance = t.place.first + t.place.p->offset_of(t.place.b) - (b.first + j);
              for (index_t l = 0; l < t.count; ++l)
                table(0, 0, Operand::table_of::row(owner, distance + l), d) += double(move[l]);
            }
          }
        });
      }
    for_each_operand<C>([&]<int N, class Operand>() {
      if constexpr (in_block<N>) detail::add_pairs<Operand::of, T, Arch>(memory.of[N], t, b, to);
    });
  }
  template <class Tile, class In, class Owner>
  static void end(Tile const& t, In const&, Owner const& owner, gradient_sinks<T>& to) {
    tile_place const& at = t.place;
    index_t const width = attune::detail::term_count<C>(*at.p);
    for_each_operand<C>([&]<int N, class Operand>() {
      if constexpr (in_tile<N>)
        for (index_t l = 0; l < t.count; ++l)
          for (index_t d = 0; d < width; ++d) {
            T const x = t.grown.of[N][d * tile::queries + l];
            if constexpr (Operand::side != operand_side::query)
              to.sum_of(Operand::table_of::of(owner))(0, 0, 0, d) += double(x);
            else if (to.takes(Operand::of))
              to.to->of(Operand::of)(at.b, at.h, at.first + l, d) += x;
          }
    });
  }
};

/// Gradients that need no memory.
template <class T>
struct unprepared_vjp {
  using grown = no_memory;
  using scratch = no_memory;
  template <class Tile, class In, class Owner>
  static void begin(Tile const&, In const&, Owner const&) {}
  template <class Tile, class In, class Owner>
  static void end(Tile const&, In const&, Owner const&, gradient_sinks<T>&) {}
};

/// A number per pair, read unchanged: its gradient is the gradient of the contraction.
template <class C, class T, class Arch>
  requires(contraction::Plain<C> && C::x::side == operand_side::pair)
struct contraction_vjp<C, T, Arch> : unprepared_vjp<T> {
  template <class Tile, class In, class Owner>
  static void pull(T const* ds, Tile const& t, In const&, Owner const&, key_block_place const& b, no_memory const&,
                   gradient_sinks<T>& to) {
    detail::add_pairs<C::x::of, T, Arch>(ds, t, b, to);
  }
};

/// to[key][query] = the tangent of the contraction, along a direction of tensors and tables. Call: moving_call.
template <class C, class T, class Arch>
struct contraction_jvp {
  using tile = tiling<T, Arch>;
  using batch = typename tile::batch;
  using operands = tile_operands<C, T, Arch>;
  using moved = typename operands::packed;
  struct scratch {
    typename operands::copies values, along;
    scratch(arena<T>& from, problem_shape const& p) : values(from, p), along(from, p) {}
  };
  template <class Call, class Owner>
  static void pack(moved const& to, Call const& c, Owner const& owner, tile_place const& at) {
    operands::pack(to, c, owner, at);
  }
  template <class Packed, class Call, class Owner>
  static void run(T* to, moved const& own, Packed const& packed, Call const& c, Owner const& owner,
                  tile_place const& at, key_block_place const& b, scratch const& memory) {
    using D = dual<batch, 1>;
    operands const of(packed, memory.values, given<std::remove_cvref_t<decltype(c.in)>>{c.in}, owner, at, b);
    operands const along(own, memory.along, c, owner, at, b);
    auto const moving = [](batch const& x, batch const& tangent) {
      D m(x);
      m.tangent[0] = tangent;
      return m;
    };
    for (index_t j = 0; j < b.n; ++j)
      for (int v = 0; v < tile::vectors; ++v) {
        D const n(of.distance(j, v));
        batch sum(T(0));
        for (index_t d = 0; d < of.width; ++d)
          sum = sum + C::term(moving(of.x(j, v, d), along.x(j, v, d)), moving(of.y(j, v, d), along.y(j, v, d)),
                              moving(of.z(j, v, d), along.z(j, v, d)), n)
                          .tangent[0];
        sum.store_aligned(to + j * tile::queries + v * tile::lanes);
      }
  }
};

/// Tangents that pack nothing.
template <class T>
struct unpacked_jvp {
  using moved = no_memory;
  using scratch = no_memory;
  template <class Call, class Owner>
  static void pack(moved const&, Call const&, Owner const&, tile_place const&) {}
};

namespace detail {

/// Values of pairs that are not products: of_row(r)(j) for key j of the block. Padded with 0 to whole batches.
template <class T, class Arch, class OfRow>
void fill_pairs(T* to, decode_place const& at, index_t n, OfRow const& of_row) {
  using tile = decode_tiling<T, Arch>;
  for (index_t r = 0; r < at.rows; ++r, to += tile::block) {
    auto const value = of_row(r);
    for (index_t j = 0; j < n; ++j) to[j] = value(j);
    std::fill(to + n, to + tile::whole(n), T(0));
  }
}

/// A contraction that packs nothing of its rows.
struct unpacked_decode_contractor {
  using packed = no_memory;
  using copies = no_memory;
  /// How many heads of a tensor it reads, at most.
  static index_t heads(problem_shape const&) { return 1; }
  template <class In, class Owner>
  static void pack(packed const&, In const&, Owner const&, decode_place const&) {}
};

}  // namespace detail

/// to[row][key] = the numbers of few rows that share their keys, and a block of keys: one pair at a time.
template <class C, class T, class Arch>
struct decode_contractor : detail::unpacked_decode_contractor {
  template <class In, class Owner>
  static void run(T* to, no_memory const&, In const& in, Owner const& owner, decode_place const& at,
                  key_block_place const& block, no_memory const&) {
    detail::fill_pairs<T, Arch>(to, at, block.n, [&](index_t r) {
      return [&, h = at.head_of(r), i = at.query_of(r)](index_t j) {
        attune::detail::pair_place const pair{at.b, h, i, block.first + j};
        using number = std::conditional_t<contraction::of_distance_alone<C>, double, T>;
        return T(attune::detail::contracted<C, number>(in, *at.p, owner, pair));
      };
    });
  }
};

}  // namespace attune::exec_cpu
