// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The products of a tile of gradients, for numbers of 16 bits and for floats alike. Some rows stay in shared memory,
// others are streamed: scores are products of both, and sums add streamed rows.
#pragma once

#include <attune/exec/cuda/tile/products.hpp>
#include <attune/exec/cuda/tile/split_products.hpp>

namespace attune::exec_cuda {

/// Numbers of 16 bits have no factors.
struct no_factors {};

/// Planes: query_plane and key_plane, the bytes between both parts of floats, of rows that stay and of streamed rows.
template <class W, class E, class C, class Planes>
struct gradient_products {
  template <class T>
  using of = typename W::template of<T>;
  using A = of<float>;
  using U = of<std::uint32_t>;
  using shared = typename W::shared;
  static constexpr bool split = tile_format<E>::split;
  static constexpr int R = 2 * C::mi, blocks = C::bn / 8;
  using plain = products<W, typename tile_format<E>::number, C>;
  using of_floats = split_products<W, C, Planes>;
  /// The factors of a lane's rows that stay.
  using factors = std::conditional_t<split, split_query_factors<A>, no_factors>;

  /// Of floats. factor(r, lane): of row r of the lane.
  template <class Factor>
  ATTUNE_LANE static void set(factors& to, Factor const& factor) {
    each_row<W, R>([&](int r, int l) { of_floats::set(to, r, l, factor(r, l)); });
  }
  /// s = x y, x at `rows` for the warps `own`, y at `streamed`; of_streamed: where its factors are.
  template <bool Skips>
  ATTUNE_LANE static void scores(A (&s)[C::mi][blocks][4], shared sm, int own, int rows, factors const& of_rows,
                                 int streamed, [[maybe_unused]] int of_streamed, int wide) {
    if constexpr (split) {
      of_floats::template scores<Skips>(s, sm, own, rows, streamed, of_rows, of_streamed, wide);
    } else {
      char const none[1] = {};
      plain::template scores<false, Skips>(s, sm, own, rows, streamed, none, wide);
    }
  }
  /// o += w y, for a part of the features of y that begins at `streamed`. Where y has numbers that are not finite, rows
  /// add what they see, and no more. infinite: whether numbers of 16 bits are not; floats know it by their factors.
  template <bool Partial, int Columns>
  ATTUNE_LANE static void add(A (&o)[C::mi][Columns][4], A const (&w)[C::mi][blocks][4], U const (&seen)[R], shared sm,
                              int streamed, [[maybe_unused]] int of_streamed, [[maybe_unused]] bool infinite) {
    if constexpr (split) {
      if (of_floats::any_infinite(sm, of_streamed)) {
        U visible[R];
        ATTUNE_UNROLL
        for (int r = 0; r < R; ++r)
          visible[r] = Partial ? seen[r] : W::each_lane([](int) { return ~std::uint32_t(0); });
        of_floats::add_seen(o, w, visible, sm, streamed, of_streamed);
      } else {
        of_floats::template add<true>(o, w, sm, streamed, of_streamed);
      }
    } else {
      if constexpr (Partial)
        if (infinite) return plain::template add_seen<true>(o, w, seen, sm, streamed);
      plain::add_any_size(o, w, sm, streamed);
    }
  }
};

}  // namespace attune::exec_cuda
