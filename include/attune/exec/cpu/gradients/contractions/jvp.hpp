// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   x'[key][query] = d contraction(query, key) along a direction of tensors and tables
//
// The tangents of the contractions of tile/contractions.hpp, for directional derivatives. They come from terms on dual
// numbers; products have faster code.
#pragma once

#include <algorithm>
#include <vector>

#include <attune/core/dual.hpp>
#include <attune/exec/cpu/tile/contractions.hpp>

namespace attune::exec_cpu {

/// Tensors, the directions in which they move (absent: not at all), and the directions of the tables.
template <class T, class Op>
struct moving_call {
  inputs<Op, tensor<T const>> const &in, &along;
  std::vector<table> const& tables_along;

  /// The directions in the form that operands read: absent, or null, if constant.
  template <field F>
  auto const& tensor_of() const {
    return member<F>(along);
  }
  table const* table_of(table const& x) const {
    table const& along_x = tables_along[std::size_t(x.number())];
    return along_x.is_set() ? &along_x : nullptr;
  }
};

/// The tangent of any contraction that reads tensors. `resident`: scratch per tile; `block`: scratch per block. `pack`
/// runs once per tile, `run` once per block. `packed` holds the numbers that the contractor packed.
template <class C, class T, class Arch>
struct contraction_jvp {
  using tile = tiling<T, Arch>;
  using batch = typename tile::batch;
  using operands = tile_operands<C, T, Arch>;
  static index_t resident(problem_shape const& p) { return operands::resident(p); }
  static index_t block(problem_shape const& p) { return 2 * operands::rows(p); }
  template <class Call, class Owner>
  static void pack(T* own, T const*, Call const& c, Owner const& owner, tile_place const& at) {
    operands::pack(own, c, owner, at);
  }
  template <class Call, class Owner>
  static void run(T* to, T const* own, T const* packed, Call const& c, Owner const& owner, tile_place const& at,
                  key_block_place const& b, T* scratch) {
    using D = dual<batch, 1>;
    operands const of(packed, scratch, given<std::remove_cvref_t<decltype(c.in)>>{c.in}, owner, at, b);
    operands const along(own, scratch + operands::rows(*at.p), c, owner, at, b);
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

/// One tangent for each distance, computed in double.
template <class C, class T, class Arch>
  requires contraction::of_distance_alone<C>
struct contraction_jvp<C, T, Arch> {
  using tile = tiling<T, Arch>;
  static index_t resident(problem_shape const&) { return 0; }
  static index_t block(problem_shape const&) { return padded<T>(tile::queries + tile::key_block); }
  template <class Call, class Owner>
  static void pack(T*, T const*, Call const&, Owner const&, tile_place const&) {}
  template <class Call, class Owner>
  static void run(T* to, T const*, T const*, Call const& c, Owner const& owner, tile_place const& at,
                  key_block_place const& b, T* scratch) {
    index_t const first = detail::first_distance(at, b), farthest = detail::farthest_distance(at);
    index_t const width = attune::detail::term_count<C>(*at.p, owner);
    for (index_t n = 0; n < tile::queries + b.n - 1; ++n) {
      index_t const distance = (std::min)(first + n, farthest);
      double sum = 0;
      for_each_operand<C>([&]<int N, class Operand>() {
        table const* const along = c.table_of(Operand::table_of::of(owner));
        if (along == nullptr) return;
        auto const slope = attune::detail::slopes<C, N, double>(attune::detail::no_inputs{}, *at.p, owner,
                                                                {at.b, at.h, distance - at.p->offset_of(at.b), 0});
        for (index_t d = 0; d < width; ++d)
          sum += slope(d) * (*along)(at.b, at.h, attune::detail::table_row<Operand>(owner, distance, d),
                                     attune::detail::table_column<Operand>(d));
      });
      scratch[n] = T(sum);
    }
    detail::spread_distances<T, Arch>(to, scratch, b.n);
  }
};

/// The number of the table's direction that each pair reads.
template <contraction::PairLookup C, class T, class Arch>
struct contraction_jvp<C, T, Arch> {
  static index_t resident(problem_shape const&) { return 0; }
  static index_t block(problem_shape const&) { return 0; }
  template <class Call, class Owner>
  static void pack(T*, T const*, Call const&, Owner const&, tile_place const&) {}
  template <class Call, class Owner>
  static void run(T* to, T const*, T const*, Call const& c, Owner const& owner, tile_place const& at,
                  key_block_place const& b, T*) {
    using operand = typename C::x;
    detail::look_up_pairs<operand, T, Arch>(to, c.table_of(operand::table_of::of(owner)), owner, at, b);
  }
};

namespace detail {

/// The packed tangent of the left side of a product.
template <class C, class T, class Arch, class Call, class Owner>
void pack_moving_left(T* own, Call const& c, [[maybe_unused]] Owner const& owner, tile_place const& at) {
  using operand = tile_operand<typename C::x, T, Arch>;
  constexpr int queries = tiling<T, Arch>::queries;
  index_t const width = at.p->width_of(C::x::of);
  operand::pack(own, c, owner, at, width);
  if constexpr (C::z::side != operand_side::none) {
    table const &z = C::z::table_of::of(owner), *const along = c.table_of(z);
    for (index_t d = 0; d < width; ++d) {
      dual<T, 1> moving_z(T(z(at.b, at.h, 0, d)));
      if (along != nullptr) moving_z.tangent[0] = T((*along)(at.b, at.h, 0, d));
      for (index_t l = 0; l < queries; ++l) {
        dual<T, 1> q(member<C::x::of>(c.in)(at.b, at.h, (std::min)(at.first + l, at.p->queries - 1), d));
        q.tangent[0] = own[d * queries + l];
        own[d * queries + l] = C::left(q, moving_z).tangent[0];
      }
    }
  }
}

/// Products: the resident memory holds the tangent of the left side.
template <class C, class T, class Arch>
struct product_jvp {
  using tile = tiling<T, Arch>;
  static constexpr int queries = tile::queries;
  static constexpr field query = C::x::of;
  static index_t resident(problem_shape const& p) { return padded<T>(queries * p.width_of(query)); }
  template <class Call, class Owner>
  static void pack(T* own, T const*, Call const& c, Owner const& owner, tile_place const& at) {
    pack_moving_left<C, T, Arch>(own, c, owner, at);
  }
};

}  // namespace detail

/// <left', k> + <left, k'>
template <KeyProduct C, class T, class Arch>
struct contraction_jvp<C, T, Arch> : detail::product_jvp<C, T, Arch> {
  using base = detail::product_jvp<C, T, Arch>;
  using tile = typename base::tile;
  static constexpr field key = C::y::of;
  static constexpr index_t pairs = padded<T>(tile::key_block * tile::queries);
  static index_t block(problem_shape const& p) { return pairs + padded<T>(tile::key_block * p.width_of(key)); }
  template <class Call, class Owner>
  static void run(T* to, T const* own, T const* packed, Call const& c, Owner const&, tile_place const& at,
                  key_block_place const& b, T* scratch) {
    auto const multiply_by = [&](T* result, T const* left, tensor<T const> const& k) {
      row_block<T> const rows(k, at.b, at.p->group(at.h, at.p->heads_of(key)), b.first, b.n, scratch + pairs);
      contract<T, Arch>(result, rows.data, rows.step, left, at.p->width_of(key), b.n);
    };
    multiply_by(to, own, member<key>(c.in));
    if (member<key>(c.along).absent()) return;
    multiply_by(scratch, packed, member<key>(c.along));
    for (index_t n = 0; n < b.n * tile::queries; ++n) to[n] += scratch[n];
  }
};

template <DistanceProduct C, class T, class Arch>
struct contraction_jvp<C, T, Arch> : detail::product_jvp<C, T, Arch> {
  using base = detail::product_jvp<C, T, Arch>;
  static constexpr index_t queries = base::queries, distances = queries + base::tile::key_block;
  static index_t block(problem_shape const& p) {
    return padded<T>(distances * p.width_of(base::query)) + 2 * padded<T>(distances * queries);
  }
  template <class Call, class Owner>
  static void run(T* to, T const* own, T const* packed, Call const& c, Owner const& owner, tile_place const& at,
                  key_block_place const& b, T* scratch) {
    index_t const width = at.p->width_of(base::query), count = queries + b.n - 1;
    T* const products = scratch + padded<T>(distances * width);
    T* const more = products + padded<T>(distances * queries);
    auto const multiply_by = [&](T* result, T const* left, table const& x) {
      detail::copy_distances<C>(scratch, x, owner, at, b, count, width);
      contract<T, Arch>(result, scratch, width, left, width, count);
    };
    table const& rows = C::y::table_of::of(owner);
    multiply_by(products, own, rows);
    if (table const* const along = c.table_of(rows)) {
      multiply_by(more, packed, *along);
      for (index_t n = 0; n < count * queries; ++n) products[n] += more[n];
    }
    for (index_t j = 0; j < b.n; ++j)
      for (index_t l = 0; l < queries; ++l) to[j * queries + l] = products[(b.n - 1 - j + l) * queries + l];
  }
};

}  // namespace attune::exec_cpu
