// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   testing::forward_on_host_warps(op, inputs, outputs)
//   testing::forward_and_save_on_host_warps(op, inputs, outputs, saved)
//
// The forward pass of the executor `cuda` on emulated warps, for tests of your own policies without a GPU.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include <attune/exec/cuda/host/host_warp.hpp>
#include <attune/exec/cuda/run.hpp>
#include <attune/exec/cuda/tile/forward_tile.hpp>

namespace attune::testing {

/// Blocks of host warps, one warp after the other.
struct host_blocks {
  using warp = host_warp;  ///< what tiles are compiled for
  /// Runs the Tiles of `count` blocks. Block n computes the tiles place(n, s) for s in [0, each).
  template <class Tile, class Call, class Place>
  void each(Call const& call, index_t count, int each, Place const& place, int warps) {
    std::vector<unsigned char> memory(Tile::shared_bytes + 128, 0xff);
    unsigned char* const shared = memory.data() + (128 - reinterpret_cast<std::uintptr_t>(memory.data()) % 128) % 128;
    for (index_t n = 0; n < count; ++n)
      for (int s = 0; s < each; ++s)
        for (int w = 0; w < warps; ++w) Tile(call, shared, w, place(n, s)).run();
  }
};

/// Runs programs as loops, and tiles on Blocks.
template <class Blocks>
struct emulated_runner : Blocks {
  static constexpr bool launches = true;  ///< needs memory
  /// program(k) for k in [0, n).
  template <class Program>
  void tasks(index_t n, Program const& program) {
    for (index_t k = 0; k < n; ++k) program(k);
  }
  /// Zeros.
  void clear(void* at, std::size_t size) { std::memset(at, 0, size); }
  /// Every tile of a call.
  template <class Op, class E, class C>
  void tiles(exec_cuda::forward_call<Op, E> const& call) {
    this->template each<exec_cuda::forward_tile<typename Blocks::warp, Op, E, C>>(
        call, call.blocks(), 1, [&](index_t n, int) { return call.block(n); }, C::warps);
  }
};
using host_runner = emulated_runner<host_blocks>;

namespace detail {
/// Calls run(arena) twice: to count its memory, then with that memory.
template <class Run>
void run_in_own_memory(Run const& run) {
  exec_cuda::arena memory;
  run(memory);
  std::vector<unsigned char> room(memory.needed());
  memory = {room.data()};
  run(memory);
}
/// Checks and runs a call.
template <class Widths, class Runner, class E, class Op>
void run_emulated(Runner& runner, Op const& op, inputs<Op, tensor<E const>> const& in, outputs<Op, E> const& out,
                  std::optional<std::span<float>> saved = std::nullopt) {
  char const* const function = saved ? "forward_and_save" : "forward";
  problem_shape const p = attune::detail::checked_problem(function, op, in, out.out.extents());
  attune::detail::check_outputs(function, out, p);
  exec_cuda::saved_arrays arrays;
  if (saved) arrays = exec_cuda::arrays_of(attune::detail::rows_in<Op>(function, *saved, p));
  run_in_own_memory([&](exec_cuda::arena& memory) {
    exec_cuda::run_forward<Runner, Op, E>(Widths{}, runner, memory, op, in, out, p, arrays);
  });
}
}  // namespace detail

/// forward() of `cuda` on the host. All views point to memory of the host. Errors and shapes are as on a device;
/// results differ by the rounding of the device's approximate functions.
template <class Widths = exec_cuda::widths<64, 128, 256>, class E, class Op>
void forward_on_host_warps(Op const& op, inputs<Op, tensor<E const>> const& in, outputs<Op, E> const& out) {
  host_runner runner;
  detail::run_emulated<Widths>(runner, op, in, out);
}

/// forward_and_save() of `cuda` on the host; `saved`: saved_size(op, in) floats.
template <class Widths = exec_cuda::widths<64, 128, 256>, class E, class Op>
void forward_and_save_on_host_warps(Op const& op, inputs<Op, tensor<E const>> const& in, outputs<Op, E> const& out,
                                    std::span<float> saved) {
  host_runner runner;
  detail::run_emulated<Widths>(runner, op, in, out, saved);
}

}  // namespace attune::testing
