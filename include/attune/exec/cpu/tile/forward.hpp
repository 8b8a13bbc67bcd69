// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   forward(cpu{}, op, {.q = Q, .k = K, .v = V}, {.out = O})
#pragma once

#include <attune/exec/cpu/tile/stream.hpp>

namespace attune {

/// Evaluates an operator, fused: nothing of size Lq x Lk exists, blocks of keys that no row of a tile sees are skipped.
/// Shapes:      operators/inputs.hpp.
/// Outputs:     out; lse, ground_weight and threshold where given. Outputs must not overlap inputs.
/// Degenerate rows: docs/reference/contracts.md.
/// Errors:      attune::error names argument, value and expectation; nothing is written before all inputs are checked.
/// Complexity:  2 (D + Dv) flops per visible block's pair; scratch per thread O(D + Dv) (some hundred KiB), and Lk
///              numbers per row of one tile for normalizers with a candidate set.
/// Determinism: bitwise the same for any number of threads, any strides, any batch and heads beside.
template <class T, class Arch, class Op>
void forward(cpu<T, Arch> exec, Op const& op, inputs<Op, tensor<T const>> const& in, outputs<Op, T> const& out) {
  problem_shape const p = detail::checked_problem("forward", op, in, out.out.extents());
  detail::check_outputs("forward", out, p);
  exec_cpu::stream(
      exec, op, in, p, {0, p.keys}, [](index_t) { return true; },
      [&](auto& tile, auto const& memory) { tile.finish(in, out, memory); });
}

}  // namespace attune
