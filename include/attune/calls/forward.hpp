// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   forward(cpu{}, op, {.q = Q, .k = K, .v = V}, {.out = O})
#pragma once

#include <concepts>

#include <attune/calls/composite.hpp>
#include <attune/calls/executor.hpp>
#include <attune/exec/problem.hpp>

namespace attune {

/// Evaluates an operator, a fold or a mixture. Fused: nothing of size Lq x Lk exists, and blocks of keys that no row of
/// a tile sees are skipped (not on reference<T>).
/// Shapes:      operators/inputs.hpp. Where the tensors are: Exec::memory.
/// Outputs:     out; lse, ground_weight and threshold if given. Outputs must not overlap inputs.
/// Degenerate rows: docs/reference/contracts.md.
/// Errors:      attune::error names the argument, the value and the expectation; nothing is written before all inputs
///              are checked. Numbers in device memory are not checked.
/// Complexity:  2 (D + Dv) flops per pair of a visible block; scratch per thread O(D + Dv) (a few hundred KiB); for
///              normalizers with a candidate set also Lk numbers per row of one tile. A fold: the outputs of all terms.
/// Determinism: bitwise the same for any number of threads, any strides, and any other batch elements and heads in the
///              call.
template <Executor Exec, class Op>
void forward(Exec const& exec, Op const& op, inputs<Op, typename Exec::view> const& in,
             outputs<Op, typename Exec::value_type> const& out) {
  if constexpr (detail::offered<call_kind::forward, Exec, Op>()) {
    if constexpr (Fold<Op>) {
      detail::folded_call<Exec, Op>("forward", exec, op, in, out.out.extents()).forward(out);
    } else {
      problem_shape const p = detail::checked_problem("forward", op, in, out.out.extents(), detail::memory_of<Exec>());
      detail::check_outputs("forward", out, p);
      if constexpr (detail::is_mixture<Op>)
        detail::forward_of_mixture(exec, op, in, p, out);
      else
        forward_rows(typename Exec::engine{}, exec, op, in, p, out, detail::heads_served{});
    }
  }
}

/// Does not compile: says which argument is wrong.
template <Executor Exec, class Op, class In>
  requires(!std::derived_from<In, inputs<Op, typename Exec::view>>)
void forward(Exec const&, Op const&, In const&, outputs<Op, typename Exec::value_type> const&) {
  static_assert(
      detail::never<In>,
      "attune: forward(): the third argument is not the inputs of this executor (Exec) and operator (Op): write "
      "a braced list, {.q = Q, .k = K, .v = V}, or inputs<Op, Exec::view> with the type of the operator without "
      "const");
}
/// Does not compile: says which argument is wrong.
template <Executor Exec, class Op, class In, class Out>
  requires(!std::derived_from<Out, outputs<Op, typename Exec::value_type>>)
void forward(Exec const&, Op const&, In const&, Out const&) {
  static_assert(
      detail::never<In>,
      "attune: forward(): the fourth argument is not the outputs of this executor (Exec) and operator (Op): "
      "write a braced list, {.out = O}, or outputs<Op, Exec::value_type> with the type of the operator without "
      "const");
}

}  // namespace attune
