// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   forward(cpu{}, op, {.q = Q, .k = K, .v = V}, {.out = O})
#pragma once

#include <attune/exec/cpu/tile/stream.hpp>

namespace attune {

/// Evaluates an operator. Fused: nothing of size Lq x Lk exists, and blocks of keys that no row of a tile sees are
/// skipped.
/// Shapes:      operators/inputs.hpp.
/// Outputs:     out; lse, ground_weight and threshold if given. Outputs must not overlap inputs.
/// Degenerate rows: docs/reference/contracts.md.
/// Errors:      attune::error names the argument, the value and the expectation; nothing is written before all inputs
///              are checked.
/// Complexity:  2 (D + Dv) flops per pair of a visible block; scratch per thread O(D + Dv) (a few hundred KiB); for
///              normalizers with a candidate set also Lk numbers per row of one tile.
/// Determinism: bitwise the same for any number of threads, any strides, and any other batch elements and heads in the
///              call.
template <class T, class Arch, class Op>
void forward(cpu<T, Arch> exec, Op const& op, inputs<Op, tensor<T const>> const& in, outputs<Op, T> const& out) {
  problem_shape const p = detail::checked_problem("forward", op, in, out.out.extents());
  detail::check_outputs("forward", out, p);
  exec_cpu::stream(
      exec, op, in, p, {0, p.keys}, [](index_t) { return true; },
      [&](auto& tile, auto const& memory) { tile.finish(in, out, memory); });
}

}  // namespace attune
