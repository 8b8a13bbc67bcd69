// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// accumulate() of the CPU executor.
#pragma once

#include <attune/calls/states.hpp>
#include <attune/exec/cpu/tile/stream.hpp>

namespace attune::exec_cpu {

/// Writes the states of all rows over the keys [keys.first, keys.last).
template <class T, class Arch, class Op>
void accumulate_rows(engine, cpu<T, Arch> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in,
                     problem_shape const& p, key_interval keys, states_of<T, Op>& all) {
  stream(
      exec, op, in, p, keys, [](index_t) { return true; },
      [&](auto& tile, auto const&) {
        if constexpr (Op::has_threshold)
          tile.states(in, all);
        else
          tile.states(all);
      });
}

}  // namespace attune::exec_cpu
