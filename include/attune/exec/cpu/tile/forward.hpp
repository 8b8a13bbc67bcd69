// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// forward() of cpu<float> and cpu<double>: rows by tiles.
#pragma once

#include <attune/calls/forward.hpp>
#include <attune/exec/cpu/tile/stream.hpp>

namespace attune::exec_cpu {

/// The rows of the heads that `serves` accepts.
template <class T, class Arch, class Op>
  requires(!storage_only<T>)
void forward_rows(engine, cpu<T, Arch> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in,
                  problem_shape const& p, outputs<Op, T> const& out, attune::detail::heads_served const& serves) {
  stream(exec, op, in, p, {0, p.keys}, serves, [&](auto& tile, auto const& memory) { tile.finish(in, out, memory); });
}

}  // namespace attune::exec_cpu
