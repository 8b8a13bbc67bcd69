// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   d<queries, keys, pairs, tables> += sum ds[key][query] d term      for a tile of queries and a block of keys
//
// The gradients of any contraction, computed from the derivatives of its term.
#pragma once

#include <algorithm>

#include <attune/core/dual.hpp>
#include <attune/exec/cpu/gradients/sinks.hpp>

namespace attune::exec_cpu {

namespace detail {

/// Adds the gradients of a block of pairs, [key][query], to the gradients of an input with a number per pair. They are
/// added in the layout of the caller's tensor, and summed where the caller shares elements.
template <field F, class T, class Arch>
void add_pairs(T const* ds, vjp_tile<T> const& t, key_block_place const& b, gradient_sinks<T>& to) {
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

/// The gradients of any contraction that reads tensors, from the derivatives of its term. `resident`: scratch per tile;
/// `block`: scratch per block. `begin` and `end` run once per tile, `pull` once per block. `ds` is 0 in lanes past the
/// last query and where a query does not see a key.
template <class C, class T, class Arch>
struct term_vjp {
  using tile = tiling<T, Arch>;
  using operands = tile_operands<C, T, Arch>;
  using batch = typename tile::batch;
  static constexpr index_t pairs = padded<T>(tile::queries * tile::key_block);
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

  static index_t grown(problem_shape const& p) { return padded<T>(tile::queries * attune::detail::term_count<C>(p)); }
  static index_t resident(problem_shape const& p) { return grown(p) * (in_tile<0> + in_tile<1> + in_tile<2>); }
  static index_t block(problem_shape const& p) {
    return operands::rows(p) + pairs * (in_block<0> + in_block<1> + in_block<2>);
  }
  template <int N>
  static T* own(vjp_tile<T> const& t) {
    return t.own + grown(*t.place.p) * ((N > 0) * in_tile<0> + (N > 1) * in_tile<1>);
  }
  template <int N>
  static T* of_block(vjp_tile<T> const& t, T* scratch) {
    return scratch + operands::rows(*t.place.p) + pairs * ((N > 0) * in_block<0> + (N > 1) * in_block<1>);
  }

  template <class In, class Owner>
  static void begin(vjp_tile<T> const& t, In const&, Owner const&) {
    std::fill_n(t.own, resident(*t.place.p), T(0));
  }
  template <class In, class Owner>
  static void pull(T const* ds, vjp_tile<T> const& t, In const& in, Owner const& owner, key_block_place const& b,
                   T* scratch, gradient_sinks<T>& to) {
    using D = dual<batch, C::operands>;
    operands const of(t.packed, scratch, given<In>{in}, owner, t.place, b);
    alignas(64) T moved[std::size_t(C::operands)][tile::queries];
    for_each_operand<C>([&]<int N, class Operand>() {
      if constexpr (in_block<N>) std::fill_n(of_block<N>(t, scratch), b.n * tile::queries, T(0));
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
          if constexpr (in_tile<N>) {
            T* const row = own<N>(t) + d * tile::queries;
            for (index_t l = 0; l < tile::queries; ++l) row[l] += move[l];
          } else if constexpr (in_block<N>) {
            T* const row = of_block<N>(t, scratch) + j * tile::queries;
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
      if constexpr (in_block<N>) detail::add_pairs<Operand::of, T, Arch>(of_block<N>(t, scratch), t, b, to);
    });
  }
  template <class In, class Owner>
  static void end(vjp_tile<T> const& t, In const&, Owner const& owner, gradient_sinks<T>& to) {
    tile_place const& at = t.place;
    index_t const width = attune::detail::term_count<C>(*at.p);
    for_each_operand<C>([&]<int N, class Operand>() {
      if constexpr (in_tile<N>)
        for (index_t l = 0; l < t.count; ++l)
          for (index_t d = 0; d < width; ++d) {
            T const x = own<N>(t)[d * tile::queries + l];
            if constexpr (Operand::side != operand_side::query)
              to.sum_of(Operand::table_of::of(owner))(0, 0, 0, d) += double(x);
            else if (to.takes(Operand::of))
              to.to->of(Operand::of)(at.b, at.h, at.first + l, d) += x;
          }
    });
  }
};

/// Specialized where faster code exists.
template <class C, class T, class Arch>
struct contraction_vjp : term_vjp<C, T, Arch> {};

/// Nothing to prepare.
template <class T>
struct unprepared_vjp {
  static index_t resident(problem_shape const&) { return 0; }
  static index_t block(problem_shape const&) { return 0; }
  template <class In, class Owner>
  static void begin(vjp_tile<T> const&, In const&, Owner const&) {}
  template <class In, class Owner>
  static void end(vjp_tile<T> const&, In const&, Owner const&, gradient_sinks<T>&) {}
};

/// A number per pair, read unchanged: its gradient is the gradient of the contraction.
template <class C, class T, class Arch>
  requires(contraction::Plain<C> && C::x::side == operand_side::pair)
struct contraction_vjp<C, T, Arch> : unprepared_vjp<T> {
  template <class In, class Owner>
  static void pull(T const* ds, vjp_tile<T> const& t, In const&, Owner const&, key_block_place const& b, T*,
                   gradient_sinks<T>& to) {
    detail::add_pairs<C::x::of, T, Arch>(ds, t, b, to);
  }
};

/// A number for each pair from a table: adds the gradient of each pair to the number that the pair reads. Pairs without
/// gradient are not looked up.
template <contraction::PairLookup C, class T, class Arch>
struct contraction_vjp<C, T, Arch> : unprepared_vjp<T> {
  template <class In, class Owner>
  static void pull(T const* ds, vjp_tile<T> const& t, In const&, Owner const& owner, key_block_place const& b, T*,
                   gradient_sinks<T>& to) {
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

/// Contractions of a distance alone: sums by distance, over all tiles of a task. `finish` passes the sums to the
/// tables.
template <class C, class T, class Arch>
  requires contraction::of_distance_alone<C>
struct contraction_vjp<C, T, Arch> : unprepared_vjp<T> {
  static constexpr index_t queries = tiling<T, Arch>::queries;
  static index_t lowest(problem_shape const& p, index_t b) { return p.offset_of(b) - (p.keys - 1); }
  static void pull_distances(T const* ds, vjp_tile<T> const& t, key_block_place const& b, double* distances) {
    double* const first = distances + detail::first_distance(t.place, b) - lowest(*t.place.p, t.place.b);
    for (index_t j = 0; j < b.n; ++j)
      for (index_t l = 0; l < t.count; ++l) first[b.n - 1 - j + l] += double(ds[j * queries + l]);
  }
  template <class Owner>
  static void finish(double const* distances, problem_shape const& p, Owner const& owner, index_t b, index_t h,
                     gradient_sinks<T>& to) {
    index_t const width = attune::detail::term_count<C>(p, owner);
    for (index_t n = 0; n < p.queries + p.keys - 1; ++n) {
      if (distances[n] == 0) continue;
      index_t const distance = lowest(p, b) + n;
      for_each_operand<C>([&]<int N, class Operand>() {
        gradient_array<double>& table = to.sum_of(Operand::table_of::of(owner));
        auto const slope = attune::detail::slopes<C, N, double>(attune::detail::no_inputs{}, p, owner,
                                                                {b, h, distance - p.offset_of(b), 0});
        for (index_t d = 0; d < width; ++d)
          table(0, 0, attune::detail::table_row<Operand>(owner, distance, d),
                attune::detail::table_column<Operand>(d)) += distances[n] * slope(d);
      });
    }
  }
};

}  // namespace attune::exec_cpu
