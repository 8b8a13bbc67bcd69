// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   dq = R^T sum ds (R k)        dk = R^T sum ds (R q)        x' = <(R q)', R k> + <R q, (R k)'>
//
// The gradients of contraction::rotary_dot. They accumulate by turned features, as the gradients of a dot product do.
// The gradient of a query is turned back at the end of its tile, the gradients of keys at the end of a task. Until then
// the gradients of keys are in rows that this contraction does not share.
#pragma once

#include <algorithm>

#include <attune/exec/cpu/gradients/contractions/jvp.hpp>
#include <attune/exec/cpu/gradients/contractions/vjp.hpp>

namespace attune::exec_cpu {

template <class T, class Arch>
struct contraction_vjp<contraction::rotary_dot, T, Arch> : detail::feature_vjp<contraction::rotary_dot, T, Arch> {
  using base = detail::feature_vjp<contraction::rotary_dot, T, Arch>;
  using turner = detail::row_turner<T, Arch>;
  static index_t block(problem_shape const&) { return 0; }
  /// Elements of a task: the gradients by all turned keys, and scratch.
  static index_t turned(problem_shape const& p) { return padded<T>(p.keys * step(p)) + turner::room(p.width); }
  static index_t step(problem_shape const& p) { return panels<T, Arch>::padded_width(p.width); }

  /// `kept`: the turned keys that the contractor keeps. `sums`: the rows of this contraction, of `turned` elements.
  template <class In, class Owner>
  static void pull(T const* ds, vjp_tile<T> const& t, In const& in, Owner const& owner, key_block_place const& b,
                   T* kept, gradient_sinks<T>& to, T* sums) {
    index_t const width = t.place.p->width;
    row_block<T> const keys = detail::turned_keys<T, Arch>(kept)(in.k, owner, t.place, b);
    accumulate_some<T, Arch>(t.own, keys, ds, t.packed, b.n, width, finite_rows<T, Arch>(keys, width, 0, b.n));
    key_rows<T> const rows =
        owner.keys == rotary_keys::turned ? to.rows(field::k) : key_rows<T>{sums, step(*t.place.p)};
    if (to.rows(field::k).data == nullptr) return;
    outer<T, Arch>(rows.at(b.first), rows.step, ds, base::query_panels(t), t.count, b.n, width,
                   base::finite_queries(t) != T(0));
  }
  /// Turns the gradients of the tile's queries back, row by row, in the memory of the panels.
  template <class In, class Owner>
  static void end(vjp_tile<T> const& t, In const&, Owner const& owner, gradient_sinks<T>& to) {
    tile_place const& at = t.place;
    if (!to.takes(field::q)) return;
    index_t const width = at.p->width;
    T* const row = base::query_panels(t);  // the panels are not read any more
    turner const turns(owner.angles.queries(), owner.layout, width, row + padded<T>(width));
    for (index_t l = 0; l < t.count; ++l) {
      for (index_t d = 0; d < width; ++d) row[d] = t.own[d * base::queries + l];
      turns.template run<turn::back>(row, row, at.b, owner.angles.row_of_query(at.first + l, at.p->offset_of(at.b)));
      T* const sum = to.to->of(field::q).row(at.b, at.h, at.first + l);
      for (index_t d = 0; d < width; ++d) sum[d] += row[d];
    }
  }
  /// At the end of a task: turns the gradients of the keys back and adds them to the gradients of the task, for the
  /// keys that it streamed.
  template <class Owner>
  static void finish(T* sums, problem_shape const& p, Owner const& owner, index_t b, gradient_sinks<T>& to,
                     key_interval streamed) {
    if (owner.keys == rotary_keys::turned || to.rows(field::k).data == nullptr) return;
    turner const turns(owner.angles.keys(), owner.layout, p.width, sums + padded<T>(p.keys * step(p)));
    turns.template run<turn::back>({sums, step(p)}, {sums, step(p)}, p.keys, b, 0);
    for (index_t j = streamed.first; j < streamed.last; ++j) {
      T const* const row = sums + j * step(p);
      T* const sum = to.rows(field::k).at(j);
      for (index_t d = 0; d < p.width; ++d) sum[d] += row[d];
    }
  }
};

template <class T, class Arch>
struct contraction_jvp<contraction::rotary_dot, T, Arch> {
  using tile = tiling<T, Arch>;
  static constexpr index_t pairs = padded<T>(tile::key_block * tile::queries);
  static index_t resident(problem_shape const& p) { return contractor<contraction::rotary_dot, T, Arch>::resident(p); }
  static index_t block(problem_shape const& p) { return pairs + detail::turned_keys<T, Arch>::room(p.width); }
  template <class Call, class Owner>
  static void pack(T* own, T const*, Call const& c, Owner const& owner, tile_place const& at) {
    if (c.along.q.absent())
      std::fill_n(own, tile::queries * at.p->width, T(0));
    else
      contractor<contraction::rotary_dot, T, Arch>::pack(own, c.along, owner, at);
  }
  template <class Call, class Owner>
  static void run(T* to, T const* own, T const* packed, Call const& c, Owner const& owner, tile_place const& at,
                  key_block_place const& b, T* scratch) {
    auto const multiply_by = [&](T* result, T const* left, auto const& in) {
      detail::turned_keys<T, Arch>(scratch + pairs).forget();
      contractor<contraction::rotary_dot, T, Arch>::run(result, left, in, owner, at, b, scratch + pairs);
    };
    multiply_by(to, own, c.in);
    if (c.along.k.absent()) return;
    multiply_by(scratch, packed, c.along);
    for (index_t n = 0; n < b.n * tile::queries; ++n) to[n] += scratch[n];
  }
};

}  // namespace attune::exec_cpu
