// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   testing::vjp_on_fibers(op, inputs, saved, {.out = dO}, to, seed)
//
// Gradients by the tiles of the executor `cuda`, with the warps of each block as fibers: the same bits for every seed,
// or a wait or a barrier is wrong.
#pragma once

#include <attune/exec/cuda/host/fiber_forward.hpp>
#include <attune/exec/cuda/host/vjp.hpp>

namespace attune::testing {

/// vjp() of `cuda` on fibers, in the schedule of this seed.
/// Errors: as vjp_on_host_warps(); attune::error if a block gets stuck.
template <class W = fiber_warp, class Widths = exec_cuda::gradient_widths, class E, class Op>
void vjp_on_fibers(Op const& op, inputs<Op, tensor<E const>> const& in, std::span<float const> saved,
                   cotangents<Op, tensor<E const>> const& d, gradient_outputs<Op, E> const& to, unsigned seed) {
  emulated_gradient_runner<fiber_blocks<W>> runner;
  runner.seed = seed;
  detail::run_emulated_vjp<Widths>(runner, op, in, saved, d, to);
}

}  // namespace attune::testing
