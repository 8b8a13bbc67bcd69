// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   (w, dw), (u, du) -> f w,  f dw + w df
//
// The weight gate in the directional derivatives of a tile, and the value sum of a uniform share whose keys have
// factors.
#pragma once

#include <attune/core/dual.hpp>
#include <attune/exec/cpu/tile/gates/weight_gate.hpp>

namespace attune::exec_cpu {

/// sum_j f_j v_j of the queries of a tile, [feature][query]: the value sum of a uniform share whose keys have factors.
template <class T, class Arch>
struct factor_sums {
  T* own = nullptr;
  static index_t size(index_t width) { return tiling<T, Arch>::queries * width; }
  factor_sums() = default;
  /// Sets the sums at `memory` to 0.
  factor_sums(T* memory, index_t width) : own(memory) { std::fill_n(memory, size(width), T(0)); }
  T operator()(index_t query, index_t d) const { return own[d * tiling<T, Arch>::queries + query]; }
};

/// Multiplies the weights of a block by their factors, both with their tangents, in place. `moving`: the operator,
/// bound to each batch of rows as duals. With a uniform share, the factors replace the numbers.
template <class T, class Arch, class Op, class Moving>
ATTUNE_POINTWISE void gate_moving_weights([[maybe_unused]] tile_rows<T, Arch, Op> const& tile, Moving const& moving,
                                          T* pairs, T* tangents, seen_block const& s, std::uint64_t const* bits) {
  using types = tile_types<T, Arch, Op>;
  using batch = typename types::batch;
  using D = dual<batch, 1>;
  constexpr index_t number = types::has_gate_plane ? types::gate_plane * types::pair_buffer : 0;
  for (int v = 0; v < types::vectors; ++v) {
    auto const gate = moving.at[v].weight_gate;
    for (index_t j = 0; j < s.n; ++j) {
      index_t const at = j * types::queries + v * types::lanes;
      bool const by_all = j >= s.full_first && j < s.full_last;
      auto const seen = lanes_of<T, Arch>(by_all ? ~std::uint64_t(0) : bits[j] >> (v * types::lanes));
      auto const store = [&](D const& x, index_t to) {
        math::select(seen, x.value, batch(T(0))).store_aligned(pairs + to);
        math::select(seen, x.tangent[0], batch(T(0))).store_aligned(tangents + to);
      };
      D u(gate_number<Op, batch>(pairs + number + at)), w(batch::load_aligned(pairs + at));
      if constexpr (attune::detail::contracts_weights<Op>) u.tangent[0] = batch::load_aligned(tangents + number + at);
      w.tangent[0] = batch::load_aligned(tangents + at);
      D const factor =
          attune::detail::weight_factor<typename Op::weight_gate_policy>(gate, u, key<D>{D(batch(T(s.first + j)))});
      store(w * factor, at);
      if constexpr (types::traits.uniform_share) store(factor, number + at);
    }
  }
}

}  // namespace attune::exec_cpu
