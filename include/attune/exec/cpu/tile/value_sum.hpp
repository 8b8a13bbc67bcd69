// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   weights of a block, values -> sum_j w_j f(x_j) v_j
//
// The value sum of a row, after the value gate.
#pragma once

#include <algorithm>

#include <attune/exec/cpu/products/values.hpp>
#include <attune/exec/cpu/row/contract.hpp>

namespace attune::exec_cpu {

/// The values of keys [first, first + n) after the value gate, contiguous. Called once per block for all tiles of a
/// head.
template <class T, class Arch, class Op>
void gate_values([[maybe_unused]] Op const& op, [[maybe_unused]] inputs<Op, tensor<T const>> const& in,
                 [[maybe_unused]] problem_shape const& p, [[maybe_unused]] index_t b, [[maybe_unused]] index_t h,
                 [[maybe_unused]] index_t first, [[maybe_unused]] index_t n, [[maybe_unused]] T* to) {
  if constexpr (Op::has_value_gate) {
    using batch = typename tiling<T, Arch>::batch;
    constexpr index_t lanes = tiling<T, Arch>::lanes;
    index_t const head = p.group(h, p.value_heads), width = p.value_width;
    auto const gate = op.value_gate.bind(attune::detail::any_query_row<batch>(p, b, h));
    auto const gates = attune::detail::spread_over(in.value_gate, in.v.extents());
    for (index_t j = 0; j < n; ++j)
      for (index_t d = 0; d < width; d += lanes) {
        alignas(64) T v[lanes] = {}, x[lanes] = {};
        index_t const some = (std::min)(lanes, width - d);
        for (index_t l = 0; l < some; ++l)
          v[l] = in.v(b, head, first + j, d + l), x[l] = gates(b, head, first + j, d + l);
        (batch::load_aligned(v) * gate.factor(batch::load_aligned(x))).store_aligned(v);
        std::copy_n(v, some, to + j * width + d);
      }
  }
}

/// The values of keys [first, first + n): in place, copied, or after the gate. memory.gated holds the gated values of
/// the block, from key `from` on.
template <class T, class Arch, class Op>
row_block<T> values_of(tile_view<T, Arch, Op> const& tile, inputs<Op, tensor<T const>> const& in, index_t first,
                       index_t n, tile_block_memory<T, Arch, Op> const& memory, index_t from) {
  if constexpr (Op::has_value_gate)
    return {memory.gated + (first - from) * tile.p->value_width, tile.p->value_width};
  else
    return {in.v, tile.b, tile.p->group(tile.h, tile.p->value_heads), first, n, memory.values};
}

/// sum += P^T V over the block. In the masked stretches a weight of 0 may mean "not seen", and 0 * NaN is NaN. So if a
/// value there is not finite, only the lanes that see the key take part.
template <class T, class Arch, class Op>
void add_values(tile_view<T, Arch, Op> const& tile, row_block<T> const& values, seen_block const& s, T const* weights,
                std::uint64_t const* bits, T* sum) {
  index_t const width = tile.p->value_width;
  if (finite_rows<T, Arch>(values, width, 0, s.full_first) && finite_rows<T, Arch>(values, width, s.full_last, s.n))
    accumulate<T, Arch>(sum, values.data, values.step, weights, s.n, width);
  else
    accumulate_seen<T, Arch>(sum, values, width, s.n, s.full_first, s.full_last, weights, bits);
}
/// The same for the masses of a block, by the products that the type of `memory` names.
template <class T, class Arch, class Op>
void add_weighted_values(tile_view<T, Arch, Op> const& tile, row_block<T> const& values, seen_block const& s,
                         T const* weights, std::uint64_t const* bits, T* sum, tile_block_memory<T, Arch, Op> const&) {
  add_values(tile, values, s, weights, bits, sum);
}

}  // namespace attune::exec_cpu
