// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   the value sum of a row, divided  + w_0 v_0,  times the output gate  ->  out
//
// The last steps of a row: adds the ground value, applies the output gate, and writes.
#pragma once

#include <attune/exec/cpu/row/contract.hpp>

namespace attune::exec_cpu {

/// The output gate's factors for the rows of the tile, [width | 1][queries]; null without an output gate.
template <class T, class Arch, class Op>
T const* output_factors(tile_rows<T, Arch, Op> const& tile, [[maybe_unused]] inputs<Op, tensor<T const>> const& in,
                        [[maybe_unused]] T* to) {
  if constexpr (!Op::has_output_gate) {
    return nullptr;
  } else {
    using types = tile_types<T, Arch, Op>;
    using batch = typename types::batch;
    auto const gates = attune::detail::spread_over(in.output_gate, tile.p->rows(1));
    pack_queries<types::queries>(to, gates, tile.b, tile.h, tile.first_query, tile.p->first_query);
    for (index_t d = 0; d < tile.p->output_gate_width; ++d)
      for (int v = 0; v < types::vectors; ++v) {
        T* const at = to + d * types::queries + v * types::lanes;
        tile.bound.at[v].output_gate.factor(batch::load_aligned(at)).store_aligned(at);
      }
    return to;
  }
}

/// Writes out = value(lane, d) + weight[lane] v0, times the output gate.
template <class T, class Arch, class Op, class Value>
void write_out(tile_rows<T, Arch, Op> const& tile, inputs<Op, tensor<T const>> const& in, outputs<Op, T> const& to,
               [[maybe_unused]] T const* weight, tile_block_memory<T, Arch, Op> const& memory, Value const& value) {
  index_t const width = tile.p->value_width;
  [[maybe_unused]] T const* const gate = output_factors(tile, in, memory.factors);
  for (index_t l = tile.skipped; l < tile.count; ++l) {
    index_t const i = tile.first_query + l;
    T* const out = to.out.row(tile.b, tile.h, i);
    index_t const step = to.out.steps().feature;
    for (index_t d = 0; d < width; ++d) out[d * step] = value(l, d);
    if constexpr (Op::normalizer_is.ground_value) {
      T const* const v0 = attune::detail::ground_value_row(in.v0, tile.b, tile.h, i);
      index_t const v0_step = in.v0.steps().feature;
      for (index_t d = 0; d < width; ++d) out[d * step] += weight[l] * v0[d * v0_step];
    }
    if constexpr (Op::has_output_gate)
      for (index_t d = 0; d < width; ++d)
        out[d * step] *= gate[(tile.p->output_gate_width == 1 ? 0 : d) * tile_types<T, Arch, Op>::queries + l];
  }
}

}  // namespace attune::exec_cpu
