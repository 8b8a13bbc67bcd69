// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   testing::vjp_on_fibers(op, inputs, saved, {.out = dO}, to, seed)
//
// Gradients by the tiles of the executor `cuda`, with the warps of each block as fibers: the same bits for every seed,
// or a wait or a barrier is wrong.
#pragma once

#include <attune/exec/cuda/host/fiber_warp.hpp>
#include <attune/exec/cuda/host/vjp.hpp>

namespace attune::testing {

/// Runs programs as loops, and tiles of gradients on warps W of a fiber_block.
template <class W>
struct fiber_gradient_runner : host_runner {
  unsigned seed = 0;  ///< of the schedule

  /// Every tile of queries.
  template <class Op, class E, class C>
  void query_gradients(exec_cuda::gradient_call<Op, E> const& call) {
    each_tile<exec_cuda::query_gradient_tile<W, Op, E, C>>(call, call.forward.row_tiles, C::warps);
  }
  /// Every tile of keys.
  template <class Op, class E, class C>
  void key_gradients(exec_cuda::gradient_call<Op, E> const& call) {
    each_tile<exec_cuda::key_gradient_tile<W, Op, E, C>>(call, call.key_tiles, C::warps);
  }

 private:
  template <class Tile, class Call>
  void each_tile(Call const& call, int tiles, int warps) {
    unsigned number = 0;
    for (int b = 0; b < int(call.forward.p.batch); ++b)
      for (int g = 0; g < call.forward.groups; ++g)
        for (int t = 0; t < tiles; ++t) {
          fiber_block block(Tile::shared_bytes);
          block.run(warps, seed * 7919u + number++, [&](int w) { Tile(call, block.shared(), w, {b, g, t}).run(); });
          if (!block.stuck().empty())
            throw error("vjp_on_fibers", "the warps of a block", block.stuck(), "every warp ends in every schedule");
        }
  }
};

/// vjp() of `cuda` on fibers, in the schedule of this seed.
/// Errors: as vjp_on_host_warps(); attune::error if a block gets stuck.
template <class W = fiber_warp, class Widths = exec_cuda::gradient_widths, class E, class Op>
void vjp_on_fibers(Op const& op, inputs<Op, tensor<E const>> const& in, std::span<float const> saved,
                   cotangents<Op, tensor<E const>> const& d, gradient_outputs<Op, E> const& to, unsigned seed) {
  fiber_gradient_runner<W> runner;
  runner.seed = seed;
  detail::run_emulated_vjp<Widths>(runner, op, in, saved, d, to);
}

}  // namespace attune::testing
