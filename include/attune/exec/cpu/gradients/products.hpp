// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   h[key][query] = <do, v>      dV[key][d] += sum_query weight dO      dQ, dK: contraction/
//
// How tiles of the backward pass multiply: in the type of the arithmetic. bf16/products.hpp has the other way.
#pragma once

#include <attune/exec/cpu/row/contract.hpp>
#include <attune/exec/cpu/tile/value_sum.hpp>

namespace attune::exec_cpu {

/// The products of a tile with the gradients do by its output rows. do is packed twice: as [d][query], which is
/// `d_out`, and as `packed`, elements of memory that live as long as the tile.
template <class T, class Arch>
struct full_cotangents {
  using tile = tiling<T, Arch>;
  using batch = typename tile::batch;

  static index_t size(problem_shape const& p) { return panels<T, Arch>::size(p.value_width, tile::queries); }
  /// Packs do. `by_out`: the tensor that `d_out` was read from, if it still has the same numbers. Returns whether do
  /// contains neither NaN nor infinity.
  template <class Op>
  static ATTUNE_INLINE bool pack(T* packed, T* d_out, tensor<T const> const& by_out, bool same,
                                 tile_rows<T, Arch, Op> const& rows) {
    index_t const width = rows.p->value_width;
    if (!same)
      panels<T, Arch>::template from_packed<tile::queries>(packed, d_out, width, rows.count);
    else
      panels<T, Arch>::from_tensor(packed, by_out, rows.b, rows.h, rows.first_query, rows.count);
    constexpr index_t panel = panels<T, Arch>::width;
    return finite_rows<T, Arch>(row_block<T>(packed, panel), panel, 0, panels<T, Arch>::count(width) * rows.count);
  }
  /// <do, x> of a batch of rows, in the order in which `gains` sums. x: [d][query].
  static ATTUNE_INLINE batch inner(T const* d_out, T const* x, index_t width) {
    batch sum(T(0));
    for (index_t d = 0; d < width; ++d)
      sum = simd::multiply_add(batch::load_aligned(d_out + d * tile::queries),
                               batch::load_aligned(x + d * tile::queries), sum);
    return sum;
  }
  /// gain[key][query] = <do, v> for a block of keys, whose gated values begin with key `first`.
  template <class Op, class Memory>
  static ATTUNE_INLINE void gains(T* gain, T const* d_out, T const*, tile_rows<T, Arch, Op> const& rows,
                                  inputs<Op, tensor<T const>> const& in, seen_block const& s, Memory const& memory,
                                  index_t first) {
    row_block<T> const values = values_of(rows, in, s.first, s.n, memory, first);
    contract<T, Arch>(gain, values.data, values.step, d_out, rows.p->value_width, s.n);
  }
  /// to[key][d] += sum over `count` queries of weights[key][query] do for n keys. `finite`: the result of `pack`.
  template <class Memory>
  static ATTUNE_INLINE void add_to_values(T* to, index_t step, T const* weights, T const* packed, Memory const&,
                                          index_t count, index_t n, index_t width, bool finite) {
    outer<T, Arch>(to, step, weights, packed, count, n, width, finite);
  }
};

/// The parts of a tile of the backward pass that depend on how it multiplies.
template <class Products>
struct gradient_products;

template <>
struct gradient_products<full_products> {
  template <class T, class Arch, class Op>
  using block_memory = tile_block_memory<T, Arch, Op>;
  template <class T, class Arch>
  using cotangents = full_cotangents<T, Arch>;
  template <class C, class T, class Arch>
  using contraction_vjp = exec_cpu::contraction_vjp<C, T, Arch>;
};

}  // namespace attune::exec_cpu
