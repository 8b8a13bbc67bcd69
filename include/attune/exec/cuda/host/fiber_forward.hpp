// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   testing::forward_on_fibers(op, inputs, outputs, seed)
//
// The forward pass of the executor `cuda` with the warps of each block as fibers: the same bits for every seed, or a
// wait or a barrier is wrong.
#pragma once

#include <string>
#include <vector>

#include <attune/core/error.hpp>
#include <attune/exec/cuda/host/fiber_warp.hpp>
#include <attune/exec/cuda/host/forward.hpp>

namespace attune::testing {

/// Blocks of fibers: fiber_warp, or a warp W of yours that derives from it.
template <class W>
struct fiber_blocks {
  using warp = W;     ///< what tiles are compiled for
  unsigned seed = 0;  ///< of the schedule
  long switches = 0;  ///< from one fiber to another, so far

  /// Runs Tiles as host_blocks::each does. Errors: attune::error if a block gets stuck.
  template <class Tile, class Call, class Place>
  void each(Call const& call, index_t count, int each, Place const& place, int warps) {
    unsigned number = 0;
    for (index_t n = 0; n < count; ++n)
      for (int s = 0; s < each; ++s) {
        fiber_block block(Tile::shared_bytes);
        block.run(warps, seed * 7919u + number++, [&](int w) { Tile(call, block.shared(), w, place(n, s)).run(); });
        switches += block.switches();
        if (!block.stuck().empty())
          throw error("fibers", "the warps of a block", block.stuck(), "every warp ends in every schedule");
      }
  }
};
template <class W>
using fiber_runner = emulated_runner<fiber_blocks<W>>;

/// forward() of `cuda` on fibers, in the schedule of this seed.
/// Errors: the errors of forward(); attune::error if a block gets stuck.
template <class W = fiber_warp, class Widths = exec_cuda::widths<64, 128, 256>, class E, class Op>
void forward_on_fibers(Op const& op, inputs<Op, tensor<E const>> const& in, outputs<Op, E> const& out, unsigned seed) {
  fiber_runner<W> runner;
  runner.seed = seed;
  detail::run_emulated<Widths>(runner, op, in, out);
}

}  // namespace attune::testing
