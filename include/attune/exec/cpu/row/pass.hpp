// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   a block of keys:  contract -> ordered sums -> interpolated rows -> logits
//
// Every pass over the keys of a tile does this with a block. Hooks that compute numbers of contractions stand here, and
// nowhere else in the forward pass.
#pragma once

#include <attune/exec/cpu/row/interpolated_rows.hpp>
#include <attune/exec/cpu/row/logits.hpp>
#include <attune/exec/cpu/row/ordered_sums.hpp>

namespace attune::exec_cpu {

/// The numbers that the rows of a tile carry from block to block.
template <class T, class Arch, class Op>
struct row_pass {
  /// Computes the numbers of all contractions of a block, each in its buffer.
  template <class Memory>
  void numbers(tile_rows<T, Arch, Op> const& tile, inputs<Op, tensor<T const>> const& in, seen_block const& s,
               std::uint64_t const* bits, Memory const& memory) {
    contract_all(tile, in, s, memory);
    ordered.fill(tile, memory.pairs, s, bits);
    if constexpr (has_interpolated_rows<Op>) read_rows<typename Memory::products>(tile, memory.pairs, s.n);
  }
  /// Then computes the logits, in place of the first contraction.
  template <class Memory>
  void logits(tile_rows<T, Arch, Op> const& tile, inputs<Op, tensor<T const>> const& in, seen_block const& s,
              std::uint64_t const* bits, Memory const& memory, logit_extremes<T, Arch>& e) {
    numbers(tile, in, s, bits, memory);
    all_logits(tile, memory.pairs, s, bits, e);
  }

  [[no_unique_address]] ordered_sums<T, Arch, Op> ordered;
};

}  // namespace attune::exec_cpu
