// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   states = accumulate(cpu{}, op, inputs, {first, last})
#pragma once

#include <attune/exec/cpu/tile/stream.hpp>
#include <attune/exec/states.hpp>

namespace attune {

/// The states of all rows over the keys [keys.first, keys.last) only. Tensors and mask belong to the whole problem, so
/// that K counts all visible keys. Merge the parts in any order, then call `finish`.
template <class T, class Arch, class Op>
states_of<T, Op> accumulate(cpu<T, Arch> exec, Op const& op, inputs<Op, tensor<T const>> const& in, key_interval keys) {
  detail::require_mergeable<Op>();
  problem_shape const p = detail::checked_problem("accumulate", op, in, detail::output_shape(in));
  detail::require_interval("accumulate", keys, p);
  states_of<T, Op> all(op, p);
  exec_cpu::stream(
      exec, op, in, p, keys, [](index_t) { return true; },
      [&](auto& tile, auto const&) {
        if constexpr (Op::has_threshold)
          tile.states(in, all);
        else
          tile.states(all);
      });
  return all;
}

}  // namespace attune
