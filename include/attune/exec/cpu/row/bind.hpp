// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   policies, a row's facts -> policies bound to a batch of rows
//
// The second step of a row. Policies are inlined into the executor in this step and in the steps that follow, and
// nowhere else.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

#include <attune/core/simd_lift.hpp>
#include <attune/exec/cpu/row/view.hpp>

namespace attune::exec_cpu {

/// The facts that policies bind to in a batch of rows from query `first` on. count[l]: the visible keys of each. Past
/// the end, the last query is repeated. Does not depend on the operator: compiled once.
template <class T, class Arch>
ATTUNE_NOINLINE row<xsimd::batch<T, Arch>> facts_of_lanes(problem_shape const& p, index_t b, index_t h, index_t first,
                                                          index_t const* count) {
  using batch = xsimd::batch<T, Arch>;
  constexpr index_t lanes = tiling<T, Arch>::lanes;
  alignas(64) T position[lanes], visible[lanes], log_visible[lanes];
  for (index_t l = 0; l < lanes; ++l) {
    position[l] = T((std::min)(first + l, p.whole_queries() - 1) + p.offset_of(b));
    visible[l] = T(count[l]);
    log_visible[l] = count[l] > 0 ? T(std::log(double(count[l]))) : T(0);
  }
  return attune::detail::row_facts<batch>(p, {b, h, first, p.whole_queries()}, batch::load_aligned(position),
                                          batch::load_aligned(visible), batch::load_aligned(log_visible),
                                          batch(T(attune::detail::inverse_sqrt_width(p))));
}

/// The rows of a tile: where they are, their policies, and what contractions packed of them (contract.hpp).
template <class T, class Arch, class Op>
struct tile_rows : tile_view<T, Arch, Op> {
  using types = tile_types<T, Arch, Op>;
  using batch = typename types::batch;
  static constexpr int vectors = types::vectors, lanes = types::lanes;
  struct bound_lanes {
    decltype(std::declval<Op const&>().bind(std::declval<row<batch> const&>())) at[std::size_t(vectors)];
  };

  batch visible[std::size_t(vectors)];  ///< K
  bound_lanes bound;
  T* packed;

  tile_rows(Op const& of, tile_place const& at, T* packed_queries)
      : tile_rows(std::make_index_sequence<std::size_t(vectors)>{}, of, at, packed_queries) {}

  /// The facts of lanes [v * lanes, (v + 1) * lanes).
  row<batch> lane_row(index_t v) const {
    return facts_of_lanes<T, Arch>(*this->p, this->b, this->h, this->first_query + v * lanes,
                                   this->sees.count + v * lanes);
  }

 private:
  template <std::size_t... V>
  tile_rows(std::index_sequence<V...>, Op const& of, tile_place const& at, T* packed_queries)
      : tile_view<T, Arch, Op>(of, at), bound{{of.bind(kept_row(index_t(V)))...}}, packed(packed_queries) {}
  row<batch> kept_row(index_t v) {
    row<batch> const facts = lane_row(v);
    visible[v] = facts.visible;
    return facts;
  }
};

}  // namespace attune::exec_cpu
