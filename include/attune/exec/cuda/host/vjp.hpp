// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   testing::vjp_on_host_warps(op, inputs, saved, {.out = dO}, to)
//
// Gradients by the tiles of the executor `cuda` on emulated warps, for tests of your own policies without a GPU.
#pragma once

#include <span>
#include <vector>

#include <attune/exec/cuda/gradients/key_tile.hpp>
#include <attune/exec/cuda/gradients/query_tile.hpp>
#include <attune/exec/cuda/gradients/run.hpp>
#include <attune/exec/cuda/host/forward.hpp>

namespace attune::testing {

/// Runs programs as loops, tiles of gradients on host warps one after the other.
struct host_gradient_runner : host_runner {
  /// Every tile of queries.
  template <class Op, class E, class C>
  void query_gradients(exec_cuda::gradient_call<Op, E> const& call) {
    each_tile<exec_cuda::query_gradient_tile<host_warp, Op, E, C>>(call, call.forward.row_tiles, C::warps);
  }
  /// Every tile of keys.
  template <class Op, class E, class C>
  void key_gradients(exec_cuda::gradient_call<Op, E> const& call) {
    each_tile<exec_cuda::key_gradient_tile<host_warp, Op, E, C>>(call, call.key_tiles, C::warps);
  }

 private:
  template <class Tile, class Call>
  void each_tile(Call const& call, int tiles, int warps) {
    std::vector<unsigned char> memory(Tile::shared_bytes + 128, 0xff);
    unsigned char* const shared = memory.data() + (128 - reinterpret_cast<std::uintptr_t>(memory.data()) % 128) % 128;
    for (int b = 0; b < int(call.forward.p.batch); ++b)
      for (int g = 0; g < call.forward.groups; ++g)
        for (int t = 0; t < tiles; ++t)
          for (int w = 0; w < warps; ++w) Tile(call, shared, w, {b, g, t}).run();
  }
};

namespace detail {
/// Counts the memory of a VJP, takes it, and runs the VJP.
template <class Widths, class Runner, class E, class Op>
void run_emulated_vjp(Runner& runner, Op const& op, inputs<Op, tensor<E const>> const& in, std::span<float const> saved,
                      cotangents<Op, tensor<E const>> const& d, gradient_outputs<Op, E> const& to) {
  problem_shape const p = attune::detail::checked_inputs("vjp", op, in);
  attune::detail::check_cotangents("vjp", d, p);
  auto const rows = attune::detail::rows_in<Op>("vjp", saved, p);
  exec_cuda::saved_numbers const arrays{rows.reference.data(), rows.earned.data(), rows.ground.data(), rows.acc.data(),
                                        rows.second.data()};
  auto const wanted = attune::detail::views_of(to, op, in);
  exec_cuda::check_wanted(op, wanted);
  exec_cuda::row_cotangents<E> by{d.out};
  if constexpr (Op::has_lse) by.lse = d.lse;
  if constexpr (Op::has_ground_weight) by.ground_weight = d.ground_weight;
  exec_cuda::arena memory;
  exec_cuda::run_vjp<Runner, Op, E>(Widths{}, runner, memory, op, in, p, arrays, by, wanted);
  std::vector<unsigned char> room(memory.used + 256);
  memory = {room.data() + (256 - reinterpret_cast<std::uintptr_t>(room.data()) % 256) % 256};
  exec_cuda::run_vjp<Runner, Op, E>(Widths{}, runner, memory, op, in, p, arrays, by, wanted);
}
}  // namespace detail

/// vjp() of `cuda` on the host, from what forward_and_save_on_host_warps() saved. Views point to memory of the host.
/// Errors: as vjp(); attune::error for a gradient that the tiles do not have.
template <class Widths = exec_cuda::gradient_widths, class E, class Op>
void vjp_on_host_warps(Op const& op, inputs<Op, tensor<E const>> const& in, std::span<float const> saved,
                       cotangents<Op, tensor<E const>> const& d, gradient_outputs<Op, E> const& to) {
  host_gradient_runner runner;
  detail::run_emulated_vjp<Widths>(runner, op, in, saved, d, to);
}

}  // namespace attune::testing
